#!/usr/bin/env bash
# The life of a package on a machine that has only Debian: installed, used, upgraded while the server runs, removed,
# installed again, purged. For scripts/chroot.sh --fresh, whose PG_CONFIG names the major version.
#
#   tests/packages/life.sh OLD.deb NEW.deb
set -uo pipefail

# shellcheck source=tests/packages/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
old=$(realpath "$1") new=$(realpath "$2")
major=$(sed -E 's|.*/postgresql/([0-9]+)/.*|\1|' <<<"$PG_CONFIG")
package=postgresql-$major-pg-arrow-cache
root=$PWD
cd /
export DEBIAN_FRONTEND=noninteractive

apt_get() { apt-get -y -qq -o Dpkg::Use-Pty=0 "$@"; }
state() { dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null | tr -d ' ' || true; }
version_of() { dpkg-deb -f "$1" Version; }
installed_version() { dpkg-query -W -f='${Version}' "$package"; }
cluster() { pg_ctlcluster "$major" cache "$@"; }
postmaster() { head -n 1 "/var/lib/postgresql/$major/cache/postmaster.pid"; }
# The account of the server, in the database postgres; what the server says is part of the output.
query() { runuser -u postgres -- psql --cluster "$major/cache" -XAtq -v VERBOSITY="${2-default}" -d postgres -c "$1" 2>&1; }
mapped() { grep -E 'pg_arrow_cache' "/proc/$(postmaster)/maps" | sed -E 's|.* (/.*)|\1|' | sort -u; }

left() { find /usr /etc /var/lib/dpkg/info /var/lib/postgresql -xdev -name '*arrow*cache*' ! -path "$conf/*"; }

# The question, and what the cache says of it.
ask() { query 'SELECT sum(a) FROM t; SELECT arrow_cache.last_status()' | paste -sd ' '; }

# A session that stays. What it is asked goes through a pipe; the answer ends with a mark.
session_start() {
    coproc SESSION { runuser -u postgres -- psql --cluster "$major/cache" -XAtq -d postgres 2>&1; }
    exec {to}>&"${SESSION[1]}" {from}<&"${SESSION[0]}"
}
session() {
    local line answer=''
    printf '%s;\n\\echo ==\n' "$1" >&"$to"
    while IFS= read -r -t 20 line <&"$from" && [ "$line" != == ]; do answer+="${answer:+ }$line"; done
    printf '%s' "$answer"
}
session_end() { printf '\\q\n' >&"$to"; exec {to}>&- {from}<&-; wait "$SESSION_PID" 2>/dev/null; }

if ! said=$(apt-get update -qq 2>&1 && apt_get install "postgresql-$major" 2>&1 && pg_createcluster "$major" cache -- --no-sync 2>&1); then
    fails 'there is a server without the package' "$said"
    exit 1
fi
conf=/etc/postgresql/$major/cache
lib=$("$PG_CONFIG" --pkglibdir)/pg_arrow_cache.so
extension=$("$PG_CONFIG" --sharedir)/extension

echo "# installed"
holds 'apt-get installs the package' apt_get install "$old"
is 'it is installed' "$(state)" ii
is 'in its version' "$(installed_version)" "$(version_of "$old")"
for file in "$lib" "$extension/pg_arrow_cache.control" "/usr/share/doc/$package/copyright" "/usr/share/doc/$package/README.Debian" "/usr/share/doc/$package/changelog.Debian.gz"; do
    is "$file belongs to it" "$(dpkg -S "$file" 2>/dev/null)" "$package: $file"
done
version=$(sed -nE "s/^default_version = '(.*)'/\1/p" "$extension/pg_arrow_cache.control")
holds 'there is a script for the version of the control file' test -s "$extension/pg_arrow_cache--$version.sql"
is 'all its files lie where pg_config says, or are documents' \
    "$(dpkg -L "$package" | while read -r path; do [ -d "$path" ] || echo "$path"; done | grep -vE "^($lib|$extension/pg_arrow_cache(\.control|--[0-9.-]+\.sql)|/usr/share/doc/$package/.*)$")" ''
is 'it has no conffiles' "$(dpkg-query -W -f='${Conffiles}' "$package")" ''
is 'and no maintainer scripts' "$(find /var/lib/dpkg/info -name "$package*" ! -name '*.list' ! -name '*.md5sums')" ''
is 'dpkg finds its files unchanged' "$(dpkg --verify "$package" 2>&1)" ''
like 'it depends on the server' "$(dpkg-query -W -f='${Depends}' "$package")" "(^|, )postgresql-$major(,|$)"
like 'and on a version of libc6' "$(dpkg-query -W -f='${Depends}' "$package")" 'libc6 \(>= '

echo "# used"
printf "%s\n" "shared_preload_libraries = 'pg_arrow_cache'" 'pg_arrow_cache.min_execution_time = 0' "listen_addresses = ''" 'fsync = off' >"$conf/conf.d/pg_arrow_cache.conf"
echo "RUST_BACKTRACE = '1'" >>"$conf/environment"
holds 'the server starts with the library' cluster start
is 'CREATE EXTENSION' "$(query 'CREATE EXTENSION pg_arrow_cache')" ''
is 'a table' "$(query 'CREATE TABLE t AS SELECT generate_series(1, 1000) AS a')" ''
is 'a MISS' "$(ask)" '500500 MISS'
is 'then a HIT' "$(ask)" '500500 HIT'
query 'INSERT INTO t VALUES (1)'
is 'after a change it is not stale' "$(ask)" '500501 STALE'
is 'the server has RUST_BACKTRACE' "$(tr '\0' '\n' <"/proc/$(postmaster)/environ" | grep RUST)" 'RUST_BACKTRACE=1'
for statement in "SELECT * FROM arrow_cache.query('SELECT 1/(a-1) FROM t')" "SELECT * FROM arrow_cache.why('SELEC')" 'COPY (SELECT 1/(a-1) FROM t) TO STDOUT (FORMAT arrow)' \
    "SELECT arrow_cache.set_policy(4294967295, 'never')" 'COPY t TO STDOUT (FORMAT arrow, nothing)' "SELECT arrow_cache.fetch('SELECT 1', '{\"limit\": -1}')"; do
    said=$(query "$statement" verbose)
    like "$statement: fails" "$said" '^ERROR: '
    is "$statement: shows no stack" "$(grep -vE '^LOCATION' <<<"$said" | grep -iE 'backtrace|pgrx|\.rs\b|\bat /|/rust|/root')" ''
done
is 'no stack is in the log' "$(grep -E 'rust_begin_unwind|stack backtrace' "/var/log/postgresql/postgresql-$major-cache.log")" ''

echo "# upgraded while the server runs"
session_start
is 'a session has a HIT' "$(session 'SELECT sum(a) FROM t \; SELECT arrow_cache.last_status()')" '500501 HIT'
before=$(postmaster)
holds 'apt-get installs the newer package' apt_get install "$new"
is 'in its version' "$(installed_version)" "$(version_of "$new")"
is 'the server was not restarted' "$(postmaster)" "$before"
is 'and goes on with the library that it has loaded' "$(mapped)" "$lib (deleted)"
is 'the session goes on' "$(session 'SELECT sum(a) FROM t \; SELECT arrow_cache.last_status()')" '500501 HIT'
is 'sees changes' "$(session 'INSERT INTO t VALUES (2); SELECT sum(a) FROM t \; SELECT arrow_cache.last_status()')" '500503 STALE'
is 'a new session has a HIT' "$(ask)" '500503 HIT'
version=$(sed -nE "s/^default_version = '(.*)'/\1/p" "$extension/pg_arrow_cache.control")
if [ "$(version_of "$old" | sed 's/-.*//')" != "$(version_of "$new" | sed 's/-.*//')" ]; then
    like 'ALTER EXTENSION UPDATE says that the server has to be restarted first' "$(query 'ALTER EXTENSION pg_arrow_cache UPDATE')" 'Restart the server'
fi
session_end
holds 'the server restarts' cluster restart
is 'it has the new library' "$(mapped)" "$lib"
is 'the objects of before work with it' "$(ask)" '500503 MISS'
like 'ALTER EXTENSION UPDATE' "$(query 'ALTER EXTENSION pg_arrow_cache UPDATE')" "^$|already installed"
is 'the extension has the version of the package' "$(query "SELECT extversion FROM pg_extension WHERE extname = 'pg_arrow_cache'")" "$version"
ask >/dev/null   # the update has changed functions, which may outdate all results of the database
is 'a HIT' "$(ask)" '500503 HIT'

echo "# removed"
holds 'apt-get removes the package' apt_get remove "$package"
is 'nothing of it is left' "$(state)" ''
is 'no file of it is left' "$(left)" ''
is 'the server that runs goes on caching' "$(query 'SELECT sum(a) FROM t')" 500503
like 'it shows hits' "$(query 'EXPLAIN SELECT sum(a) FROM t')" ArrowCache
is 'its functions say that the library is missing' "$(query 'SELECT arrow_cache.last_status()')" 'ERROR:  could not access file "pg_arrow_cache": No such file or directory'
cluster stop
if said=$(cluster start 2>&1); then fails 'a restart with the name in shared_preload_libraries fails' "$said"
else passes 'a restart with the name in shared_preload_libraries fails'; fi
like 'and says so' "$said$(tail -n 5 "/var/log/postgresql/postgresql-$major-cache.log")" 'FATAL:  could not access file "pg_arrow_cache": No such file or directory'
rm "$conf/conf.d/pg_arrow_cache.conf"
holds 'without it the server starts' cluster start
is 'the data is there' "$(query 'SELECT sum(a) FROM t')" 500503
is 'DROP EXTENSION needs no library' "$(query 'DROP EXTENSION pg_arrow_cache; DROP SCHEMA arrow_cache')" ''
cluster stop

echo "# installed again and purged"
holds 'apt-get installs it again' apt_get install "$new"
printf "%s\n" "shared_preload_libraries = 'pg_arrow_cache'" 'pg_arrow_cache.min_execution_time = 0' "listen_addresses = ''" >"$conf/conf.d/pg_arrow_cache.conf"
holds 'the server starts with the library' cluster start
is 'CREATE EXTENSION' "$(query 'CREATE EXTENSION pg_arrow_cache')" ''
is 'a MISS' "$(ask)" '500503 MISS'
is 'then a HIT' "$(ask)" '500503 HIT'
cluster stop
holds 'apt-get purges the package' apt_get purge "$package"
is 'dpkg knows nothing of it' "$(state)" ''
is 'no file of it is left' "$(left)" ''
cd "$root" || exit
echo "1..$number"
