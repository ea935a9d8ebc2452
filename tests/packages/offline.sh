#!/usr/bin/env bash
# The tarball of a release builds without a network and without crates of the machine, into the same library as the package.
#
#   tests/packages/offline.sh TARBALL PACKAGE.deb
set -uo pipefail

# shellcheck source=tests/packages/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
tarball=$1 package=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -x -f "$tarball" -C "$work"
name=$(basename "$tarball" .tar.gz)
is 'the tarball has one directory' "$(ls "$work")" "$name"
is 'no file in it can be written by others' "$(find "$work/$name" -perm /022 ! -type l | head)" ''
mkdir "$work/cargo" "$work/there"

# Cargo and rustc are taken from the toolchain itself: those in CARGO_HOME are rustup's, whose place is not the one given here.
tools=$(dirname "$(rustup which cargo)")
build() (
    set -o pipefail
    cd "$work/$name" || exit
    unshare --net env CARGO_HOME="$work/cargo" PATH="$tools:$PATH" CARGO_NET_OFFLINE=true DESTDIR="$work/there" scripts/install.sh 2>&1 | tail -n 20
)
holds 'there is no network' sh -c '! unshare --net getent ahosts deb.debian.org'
holds 'scripts/install.sh builds and installs' build
is 'without a crate from elsewhere' "$(ls "$work/cargo/registry" 2>/dev/null)" ''
built=$(find "$work/there" -name pg_arrow_cache.so)
is 'no machine directory is in the library' "$(strings -a "$built" | grep -F -e "$work" -e "$tools" | sort -u)" ''

dpkg-deb -x "$package" "$work/package"
build_id() { readelf --notes "$1" 2>/dev/null | sed -nE 's/.*Build ID: //p'; }
packaged=$(find "$work/package" -name pg_arrow_cache.so)
is 'it is the library of the package' "$(build_id "$built")" "$(build_id "$packaged")"
strip --strip-all -o "$work/stripped.so" "$built"
strip --strip-all -o "$work/packaged.so" "$packaged"
holds 'byte by byte, when it is stripped' cmp "$work/stripped.so" "$work/packaged.so"
echo "1..$number"
