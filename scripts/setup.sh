#!/usr/bin/env bash
# Brings a Debian machine to the point where the extension builds and its tests run. Every step looks before it acts,
# so that a second run only checks. Existing PostgreSQL clusters are never touched. Status 69 (EX_UNAVAILABLE) means that packages could
# not be had; any other than 0 is an error.
#
#   scripts/setup.sh           everything for building and testing
#   scripts/setup.sh build     what building and installing the extension needs, and no more
#   scripts/setup.sh demo      what the demo needs besides
#   scripts/setup.sh sql       what the suites regress and isolation need besides
#   scripts/setup.sh rust      only what `cargo test -p arrow_cache_core` needs
#   scripts/setup.sh audit     what scripts/functions/audit.py needs to compile PostgreSQL
#   scripts/setup.sh deb       what scripts/deb.sh needs to build Debian packages
#   scripts/setup.sh bench     everything, and what the bench needs besides: pgpool-II, Redis, valgrind, Python packages
#   scripts/setup.sh monitoring  everything, and Prometheus with its exporter for PostgreSQL
#   scripts/setup.sh others    everything, and the other libraries of tests/others
#   scripts/setup.sh drivers   everything, and the drivers of tests/drivers: Java, Go, Node, ODBC, PgBouncer, Python packages
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
unavailable() { printf 'setup: %s\n' "$*" >&2; exit 69; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else die "root is needed for: $* (run as root, or install sudo)"; fi
}

# A dpkg query exits 1 for a name it has never heard of, which is an answer here and not an error.
installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }

apt_update() { as_root apt-get update -qq || unavailable "apt-get update failed"; }

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        unavailable "apt-get cannot install $*"
}

# Debian's server package creates and starts a cluster "main" on a machine that has none. Nothing here needs it, so
# the package is installed with that switched off and the administrator's setting is put back afterwards.
apt_install_server() {
    local conf=/etc/postgresql-common/createcluster.conf kept status=0
    apt_install postgresql-common
    kept=$(mktemp)
    cp "$conf" "$kept"
    as_root sed -i 's/^#* *create_main_cluster *=.*/create_main_cluster = false/' "$conf"
    (apt_install "$@") || status=$?
    as_root cp "$kept" "$conf"
    rm -f "$kept"
    return "$status"
}

# What compiling takes, the server with its headers, and the packages that are named.
packages() {
    command -v apt-get >/dev/null || { say "no apt-get: install the packages listed in scripts/setup.sh yourself"; return 0; }
    # The major version is in Debian's path; another layout means that the user brought a server of their own.
    local major='' wanted missing=() server=() name
    [[ $pg_config =~ ^/usr/lib/postgresql/([0-9]+)/ ]] && major=${BASH_REMATCH[1]}
    wanted=(build-essential clang libclang-dev pkg-config "$@")
    for name in "${wanted[@]}"; do installed "$name" || missing+=("$name"); done
    if [ -n "$major" ]; then
        for name in "postgresql-$major" "postgresql-server-dev-$major"; do installed "$name" || server+=("$name"); done
    fi
    [ "${#missing[@]}" -gt 0 ] || [ "${#server[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]-} ${server[*]-}"
    apt_update
    [ "${#missing[@]}" = 0 ] || apt_install "${missing[@]}"
    [ "${#server[@]}" = 0 ] || apt_install_server "${server[@]}"
}

# A language in which May has another name, for tests of lc_time. A bare machine has only C.
foreign_locale() {
    locale -a | grep -qix 'de_DE\.utf-\?8' && return 0
    say "making the locale de_DE.UTF-8"
    as_root localedef -i de_DE -f UTF-8 de_DE.UTF-8
}

# Debian asks policy-rc.d before a package starts a service; 101 forbids it. The administrator's file is put back, and
# what systemd would start at the next boot is switched off: the bench runs servers of its own.
apt_install_without_services() (
    policy=/usr/sbin/policy-rc.d
    kept=$policy.kept-by-setup
    # What an interrupted run has kept is the administrator's; what lies beside it is ours.
    [ -e "$kept" ] || [ ! -e "$policy" ] || as_root mv "$policy" "$kept"
    trap 'as_root rm -f "$policy"; [ ! -e "$kept" ] || as_root mv "$kept" "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
    apt_install "$@" || exit
    command -v systemctl >/dev/null || exit 0
    for name in "$@"; do as_root systemctl disable "$name" >/dev/null 2>&1 || true; done
)

audit_packages() {
    command -v apt-get >/dev/null || { say "no apt-get: install bison, flex and the headers of libxml2 and ICU yourself"; return 0; }
    local missing=() name
    for name in build-essential pkg-config bison flex libxml2-dev libicu-dev; do installed "$name" || missing+=("$name"); done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    apt_update
    apt_install "${missing[@]}"
}

deb_packages() {
    command -v apt-get >/dev/null || die "no apt-get: Debian packages are built on Debian"
    local missing=() name
    for name in debhelper dpkg-dev; do installed "$name" || missing+=("$name"); done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    apt_update
    apt_install "${missing[@]}"
}

# Packages whose services stay off.
quiet_packages() {
    command -v apt-get >/dev/null || { say "no apt-get: install $* yourself"; return 0; }
    local missing=() name
    for name in "$@"; do installed "$name" || missing+=("$name"); done
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}; their services stay off"
    # A source of the administrator's that does not answer is no reason to stop: what is missing shows below.
    as_root apt-get update -qq || say "apt-get update failed"
    apt_install_without_services "${missing[@]}"
}

# Libraries of others for the server's major version; none of them is preloaded by being installed.
others_packages() {
    command -v apt-get >/dev/null || { say "no apt-get: install the libraries of tests/others/run.py yourself"; return 0; }
    local missing=() name major
    major=$("$pg_config" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
    for name in pgaudit pgauditlogtofile pg-stat-kcache pg-qualstats pg-wait-sampling cron partman set-user hypopg plprofiler plpgsql-check \
        pg-track-settings repack; do
        installed "postgresql-$major-$name" || missing+=("postgresql-$major-$name")
    done
    installed pgbadger || missing+=(pgbadger)
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}"
    as_root apt-get update -qq || say "apt-get update failed"
    # One by one, so that a package that a mirror lacks keeps out no other.
    for name in "${missing[@]}"; do
        (apt_install "$name") || say "$name cannot be had: it will not be run"
    done
}

# The drivers of other languages, and PgBouncer, whose service stays off. What a machine has from elsewhere is not installed again.
drivers_packages() {
    command -v apt-get >/dev/null || { say "no apt-get: install a JDK, Go, Node, psqlODBC and PgBouncer yourself"; return 0; }
    local missing=() name
    for name in curl ca-certificates odbc-postgresql libodbc2 pgbouncer; do installed "$name" || missing+=("$name"); done
    command -v javac >/dev/null || missing+=(default-jdk-headless)
    command -v go >/dev/null || missing+=(golang-go)
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    command -v mvn >/dev/null || missing+=(maven)
    [ "${#missing[@]}" -gt 0 ] || return 0
    say "installing ${missing[*]}; their services stay off"
    as_root apt-get update -qq || say "apt-get update failed"
    # One by one, so that a package that a mirror lacks keeps out no other.
    for name in "${missing[@]}"; do
        apt_install_without_services "$name" || say "$name cannot be had: what needs it will not be run"
    done
}

have_cargo() { command -v cargo >/dev/null || die "cargo is missing: install Rust first (https://rustup.rs)"; }

rust() {
    have_cargo
    # Two rustups cannot add the same component at once, and asking is cheap.
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
}

# The environment target/venv, with what these folders' requirements.txt name. It keeps a copy of each list, and is made
# anew when that of the demo has changed, which all begin with.
python_packages() {
    local venv=$root/target/venv folder pins kept
    for folder in "$@"; do
        pins=$root/$folder/requirements.txt kept=$venv/requirements-$folder.txt
        if cmp -s "$pins" "$kept" && [ -x "$venv/bin/python" ]; then continue; fi
        say "preparing the Python environment target/venv: $folder"
        [ "$folder" != demo ] || python3 -m venv --clear "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$pins" || unavailable "pip cannot install what $pins names"
        cp "$pins" "$kept"
    done
}

demo_packages=(python3 python3-venv)
sql_packages=(python3 util-linux locales)
test_packages=("${demo_packages[@]}" "${sql_packages[@]}" perl libipc-run-perl shellcheck libfaketime)

purpose=${1:-all}
case $purpose in
    audit)
        audit_packages
        exit ;;
    rust)
        rust
        exit ;;
    deb)
        have_cargo
        packages python3
        deb_packages
        exit ;;
    build)
        have_cargo
        packages ;;
    demo)
        have_cargo
        packages "${demo_packages[@]}" ;;
    sql)
        have_cargo
        packages "${sql_packages[@]}"
        foreign_locale ;;
    all | bench | drivers | monitoring | others)
        rust
        packages "${test_packages[@]}"
        foreign_locale ;;
    *) die "no such purpose: $purpose" ;;
esac
[ -x "$pg_config" ] || die "$pg_config does not exist: set PG_CONFIG to the pg_config of the server to build for"
case $purpose in
    demo) python_packages demo ;;
    bench)
        quiet_packages pgpool2 redis-server valgrind
        python_packages demo tests bench ;;
    all) python_packages demo tests ;;
    monitoring)
        python_packages demo tests
        quiet_packages prometheus prometheus-postgres-exporter ;;
    others)
        python_packages demo tests
        others_packages ;;
    drivers)
        python_packages demo tests
        drivers_packages
        "$root/tests/drivers/prepare.sh" ;;
esac
