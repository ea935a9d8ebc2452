#!/usr/bin/env bash
# Makes the archives of a release from the last commit, in target/dist:
#
#   pg_arrow_cache-VERSION.zip       the sources, as PGXN takes them
#   pg_arrow_cache-VERSION.tar.gz    the sources and all crates that they need: builds without a network
#
# The same commit makes the same files: names are sorted, times are those of the commit.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
die() { printf 'dist: %s\n' "$*" >&2; exit 1; }

[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$PWD" ] || die "this is not a checkout of git, from which releases are made"
version=$(git show HEAD:pg_arrow_cache.control | sed -nE "s/^default_version = '(.*)'/\1/p")
[ -z "$(git status --porcelain)" ] || printf 'dist: changes that are not committed are left out\n' >&2
name=pg_arrow_cache-$version
dist=target/dist
mkdir -p "$dist"

git archive --format=zip -9 --prefix="$name/" --output="$dist/$name.zip" HEAD

work=$(mktemp -d "$dist/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
git archive --format=tar --prefix="$name/" HEAD | tar --extract --directory="$work"
(cd "$work/$name" && mkdir -p .cargo && cargo vendor --quiet --locked --versioned-dirs vendor >.cargo/config.toml)
tar --create --directory="$work" --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw,a-s "$name" |
    gzip -9n >"$dist/$name.tar.gz"
printf 'dist: %s\n' "$dist/$name.zip" "$dist/$name.tar.gz"
