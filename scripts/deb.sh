#!/usr/bin/env bash
# Builds Debian packages, one for each major version whose development package is installed, with its -dbgsym: target/deb/*.deb.
#
#   scripts/deb.sh             the version that debian/changelog says
#   scripts/deb.sh VERSION     another version of the same sources, such as 0.2.0-1+local1
#
# The build runs in a copy of the sources, below target/deb/build, and compiles in target/deb/cargo. docs/packaging.md has more.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
say() { printf 'deb: %s\n' "$*"; }
die() { printf 'deb: %s\n' "$*" >&2; exit 1; }

for tool in dh dpkg-buildpackage cargo python3; do
    command -v "$tool" >/dev/null || die "$tool is missing: scripts/setup.sh deb installs Debian's packages debhelper and dpkg-dev; Rust is from https://rustup.rs"
done

# Two places say the version; the packages must not lie about what is in them.
upstream=$(sed -nE "s/^default_version = '(.*)'/\1/p" pg_arrow_cache.control)
version=$(dpkg-parsechangelog --show-field Version)
[ "${version%-*}" = "$upstream" ] || die "debian/changelog is of ${version%-*}, pg_arrow_cache.control of $upstream: write an entry in debian/changelog"
asked=${1:-$version}
case ${asked%-*} in "$upstream" | "$upstream"[+~]*) ;; *) die "$asked is not a version of $upstream" ;; esac

majors=()
for pg_config in /usr/lib/postgresql/*/bin/pg_config; do
    [ -x "$pg_config" ] || continue
    major=$(sed -E 's|.*/postgresql/([^/]+)/.*|\1|' <<<"$pg_config")
    if ! grep -q "^pg$major = " Cargo.toml; then say "no package for $major, which pg_arrow_cache does not support"
    elif [ ! -e "$("$pg_config" --includedir-server)/postgres.h" ]; then say "no package for $major: postgresql-server-dev-$major is not installed"
    else majors+=("$major"); fi
done
[ "${#majors[@]}" -gt 0 ] || die "no major version to build for below /usr/lib/postgresql: install a postgresql-server-dev-NN"

# The copy has a path of its own, always the same, so that cargo finds what it has compiled before.
source=target/deb/build/sources
rm -rf target/deb/build
mkdir -p "$source" target/deb/cargo
tar --create --exclude=./target --exclude=./.git --exclude=./debian/control . | tar --extract --directory="$source"
ln -s ../../cargo "$source/target"

{
    sed "/^Package: /,\$d; s/SERVER-DEV/$(printf 'postgresql-server-dev-%s, ' "${majors[@]}" | sed 's/, $//')/" debian/control.in
    for major in "${majors[@]}"; do
        sed -n "/^Package: /,\$p" debian/control.in | sed "s/PGVERSION/$major/g"
        echo
    done
} >"$source/debian/control"
if [ "$asked" != "$version" ]; then
    {
        printf 'pg-arrow-cache (%s) UNRELEASED; urgency=medium\n\n  * Built locally.\n\n' "$asked"
        printf ' -- %s  %s\n\n' "$(dpkg-parsechangelog --show-field Maintainer)" "$(date -R)"
        cat debian/changelog
    } >"$source/debian/changelog"
fi
scripts/third_party.py "pg${majors[0]}" >"$source/debian/third-party.txt"

say "building $asked for PostgreSQL ${majors[*]}"
(cd "$source" && dpkg-buildpackage --build=binary --no-sign) >target/deb/build.log 2>&1 || { tail -n 40 target/deb/build.log >&2; die "the build failed: see target/deb/build.log"; }
for file in target/deb/build/*.deb; do
    mv "$file" target/deb/
    say "target/deb/${file##*/}"
done
