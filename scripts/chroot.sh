#!/usr/bin/env bash
# Runs a command in a Debian release of its own: a chroot, with this project at /pg_arrow_cache and the machine's Rust.
#
#   scripts/chroot.sh bookworm|trixie|forky COMMAND...          PostgreSQL 15, 17 or 18; what the command installs stays there
#   scripts/chroot.sh --fresh bookworm|trixie|forky COMMAND...  in a copy of the bare release, without Rust, which is removed afterwards
#
# A release is prepared once, below target/chroots/, by debootstrap from the mirror that the machine's own apt uses. Each has a
# target/ of its own, but what cargo compiles is shared by trixie and later ones: most crates know no server. Mounts belong to a mount namespace of the command and vanish with it. Needs root. PG_CONFIG is that of the
# release. Status 69 (EX_UNAVAILABLE) means that there is no such chroot here; else the status is the command's.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unavailable() { printf 'chroot: %s\n' "$*" >&2; exit 69; }
usage() { sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64; }

fresh=
if [ "${1-}" = --fresh ]; then fresh=yes; shift; fi
release=${1-}
[ $# -ge 2 ] || usage
shift
case $release in
    bookworm) major=15 ;;
    trixie) major=17 ;;
    forky) major=18 ;;
    *) usage ;;
esac
[ "$(id -u)" = 0 ] || unavailable "root is needed to make a chroot: run as root, or with sudo"

chroots=$root/target/chroots
bare=$chroots/$release.bare
home=$chroots/$release

# The mirror of the machine's own Debian: the first "deb" line, or the first URIs of a .sources file, whose path is /debian.
mirror() {
    { sed -nE 's/^deb (\[[^]]*\] )?(https?:[^ ]*\/debian\/?) .*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
      sed -nE 's/^URIs: *(https?:[^ ]*\/debian\/?)( .*)?$/\1/p' /etc/apt/sources.list.d/*.sources; } 2>/dev/null | head -n 1
}

# debootstrap of an older Debian does not know the names of newer releases, which are all made in the same way.
script_of() {
    local script=/usr/share/debootstrap/scripts/$release
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    printf '%s' "$script"
}

prepare() {
    [ ! -e "$bare/prepared" ] || return 0
    if ! command -v debootstrap >/dev/null; then
        apt-get update -qq || true
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null ||
            unavailable "debootstrap cannot be installed"
    fi
    local from
    from=$(mirror)
    [ -n "$from" ] || unavailable "no Debian mirror in /etc/apt: write a deb line"
    printf 'chroot: preparing %s from %s\n' "$release" "$from"
    rm -rf "$bare"
    mkdir -p "$chroots"
    debootstrap --variant=minbase --include=ca-certificates "$release" "$bare" "$from" "$(script_of)" >"$chroots/$release.log" 2>&1 ||
        unavailable "debootstrap $release failed: see $chroots/$release.log"
    # No service starts in a chroot, and a release that is not finished has indexes whose date has passed.
    printf '#!/bin/sh\nexit 101\n' >"$bare/usr/sbin/policy-rc.d"
    chmod 755 "$bare/usr/sbin/policy-rc.d"
    # What is lost in a crash of the machine is made again.
    printf 'force-unsafe-io\n' >"$bare/etc/dpkg/dpkg.cfg.d/chroot"
    printf 'Acquire::Check-Valid-Until "false";\nAPT::Install-Recommends "false";\n' >"$bare/etc/apt/apt.conf.d/90chroot"
    if [ "$release" != forky ]; then
        printf 'deb %s %s main\ndeb %s-security %s-security main\n' "$from" "$release" "${from%/}" "$release" >"$bare/etc/apt/sources.list"
    fi
    touch "$bare/prepared"
}

prepare
place=$home
if [ -n "$fresh" ]; then
    place=$(mktemp -d "$chroots/$release.XXXXXX")
    trap 'rm -rf "$place"' EXIT
fi
if [ ! -e "$place/prepared" ]; then
    cp -a "$bare/." "$place.part" && rm -rf "$place" && mv "$place.part" "$place"
fi
mkdir -p "$chroots/$release.target" "$place/pg_arrow_cache" "$place/rust/cargo" "$place/rust/rustup"
# What is compiled in C on a later release may need a later C library than bookworm has.
compiled=
[ "$release" = bookworm ] || compiled=$chroots/compiled

# Inside the namespace: mount what the command needs, and start it in the project.
# shellcheck disable=SC2016   # the variables are those of the inner shell
inside='
    set -e
    place=$1 root=$2 target=$3 fresh=$4 major=$5 compiled=$6; shift 6
    mount --make-rprivate /
    mount --rbind /proc "$place/proc"; mount --rbind /sys "$place/sys"; mount --rbind /dev "$place/dev"
    mount --bind "$root" "$place/pg_arrow_cache"
    mount --bind "$target" "$place/pg_arrow_cache/target"
    if [ -n "$compiled" ]; then
        for profile in quick release; do
            mkdir -p "$compiled/$profile" "$target/$profile"
            mount --bind "$compiled/$profile" "$place/pg_arrow_cache/target/$profile"
        done
    fi
    cp -L /etc/resolv.conf "$place/etc/resolv.conf"
    cp -L /etc/hosts "$place/etc/hosts"
    # Authorities that this machine trusts besides those of Debian, such as that of a proxy.
    authorities=$(compgen -G "/usr/local/share/ca-certificates/*.crt" || true)
    if [ -n "$authorities" ] && [ ! -e "$place/authorities" ]; then
        cp /usr/local/share/ca-certificates/*.crt "$place/usr/local/share/ca-certificates/"
        chroot "$place" update-ca-certificates >/dev/null
        touch "$place/authorities"
    fi
    path=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
    rust=()
    if [ -z "$fresh" ]; then
        mount --bind "${CARGO_HOME:-$HOME/.cargo}" "$place/rust/cargo"
        mount --bind "${RUSTUP_HOME:-$HOME/.rustup}" "$place/rust/rustup"
        rust=(CARGO_HOME=/rust/cargo RUSTUP_HOME=/rust/rustup)
        path=/rust/cargo/bin:$path
    fi
    kept=()
    for name in $(compgen -e | grep -E "^(BUILD_PROFILE$|ORACLE_SECONDS$|https?_proxy$|no_proxy$)" || true); do kept+=("$name=${!name}"); done
    # As PID 1 of a namespace of its own, so that nothing that the command has started outlives it.
    exec unshare --pid --fork --kill-child chroot "$place" env -i HOME=/root LANG=C.UTF-8 TERM=dumb PATH="$path" \
        PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config" PIP_CERT=/etc/ssl/certs/ca-certificates.crt "${rust[@]}" "${kept[@]}" \
        sh -c "mount -t proc proc /proc && cd /pg_arrow_cache && exec \"\$@\"" sh "$@"
'
unshare --mount true 2>/dev/null || unavailable "this machine allows no mount namespace (a container without CAP_SYS_ADMIN?)"
unshare --mount bash -c "$inside" bash "$place" "$root" "$chroots/$release.target" "$fresh" "$major" "$compiled" "$@"
