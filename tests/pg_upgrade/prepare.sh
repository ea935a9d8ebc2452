#!/usr/bin/env bash
# Inside the chroot of scripts/chroot.sh: both servers, and the extension for each of them.
#
#   tests/pg_upgrade/prepare.sh bookworm 15 17     15 comes from bookworm, the release before that of the chroot
#
# Status 69 (EX_UNAVAILABLE) means that the packages cannot be had.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
release=$1 old=$2 new=$3
sources=/etc/apt/sources.list.d/$release.list

# The release before is asked last: only for packages that this one does not have.
if [ ! -e "$sources" ]; then
    mirror=$(sed -nE 's/^deb (\[[^]]*\] )?(https?:[^ ]*\/debian\/?) .*/\2/p' /etc/apt/sources.list | head -n 1)
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$release" >"/etc/apt/preferences.d/$release"
    printf 'deb %s %s main\n' "$mirror" "$release" >"$sources"
    apt-get update -qq || true
fi
# `deb` is what building needs, without the Python environment of other tests.
for major in "$old" "$new"; do
    PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config scripts/setup.sh deb
done
for major in "$old" "$new"; do
    PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config scripts/install.sh
done
