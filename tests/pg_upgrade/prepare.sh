#!/usr/bin/env bash
# Inside the chroot of scripts/chroot.sh: both servers, and the extension for each of them.
#
#   tests/pg_upgrade/prepare.sh bookworm 15 17     15 comes from bookworm, the release before that of the chroot
#
# Of the older server it takes the installed minor version, or the newest, that PostgreSQL itself can upgrade to the newer server, and
# says which.
# Status 69 (EX_UNAVAILABLE) means that the packages cannot be had, or that there is no such version.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
release=$1 old=$2 new=$3
sources=/etc/apt/sources.list.d/$release.list

# The release before is asked last: only for packages that this one does not have.
if [ ! -e "$sources" ]; then
    mirror=$(sed -nE 's/^deb (\[[^]]*\] )?(https?:[^ ]*\/debian\/?) .*/\2/p' /etc/apt/sources.list | head -n 1)
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$release" >"/etc/apt/preferences.d/$release"
    printf 'deb %s %s main\ndeb %s-security %s-security main\n' "$mirror" "$release" "${mirror%/}" "$release" >"$sources"
    printf 'Package: *\nPin: release n=%s-security\nPin-Priority: 100\n' "$release" >"/etc/apt/preferences.d/$release-security"
    apt-get update -qq || true
fi
# `deb` is what building needs, without the Python environment of other tests.
for major in "$old" "$new"; do
    PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config scripts/setup.sh deb
done

# Can the server itself upgrade a cluster with one table, without the extension? The older server may have a fix whose traces in the
# catalogs the newer one does not know.
upgrades() {
    local place status=0
    place=$(mktemp -d)
    chown postgres "$place"
    su postgres -s /bin/bash -c "set -e
        cd $place
        for major in $old $new; do
            /usr/lib/postgresql/\$major/bin/initdb -D \$major -A trust -k >\$major.log
        done
        echo 'CREATE TABLE t (a int)' | /usr/lib/postgresql/$old/bin/postgres --single -D $old postgres >single.log
        /usr/lib/postgresql/$new/bin/pg_upgrade -b /usr/lib/postgresql/$old/bin -B /usr/lib/postgresql/$new/bin -d $old -D $new -s $place >upgrade.log" \
        >/dev/null 2>&1 || status=$?
    rm -rf "$place"
    return "$status"
}

installed() { dpkg-query -W -f='${Version}' "postgresql-$old"; }

possible=
for version in "$(installed)" $(apt-cache madison "postgresql-$old" | awk '{print $3}' | sort -Vru); do
    if [ "$version" != "$(installed)" ]; then
        apt-get install -y -qq --no-install-recommends --allow-downgrades "postgresql-$old=$version" "postgresql-client-$old=$version" \
            "postgresql-server-dev-$old=$version" >/dev/null
    fi
    if upgrades; then possible=$version; break; fi
    printf 'pg_upgrade: PostgreSQL itself cannot upgrade %s to %s\n' "$version" "$(/usr/lib/postgresql/"$new"/bin/postgres --version)"
done
[ -n "$possible" ] || { echo "pg_upgrade: no $old that can be had here can be upgraded to $new" >&2; exit 69; }
printf 'pg_upgrade: from %s\n' "$possible"

for major in "$old" "$new"; do
    PG_CONFIG=/usr/lib/postgresql/$major/bin/pg_config scripts/install.sh
done
