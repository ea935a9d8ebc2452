#!/usr/bin/env bash
# Builds the extension and installs it for $PG_CONFIG, below $DESTDIR if that is set. Does nothing when what is installed
# is what the present sources build. Where BUILD_PROFILE=quick asks for a build in less time, a release does as well.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
destination=${DESTDIR-}

lib_dir=$destination$("$pg_config" --pkglibdir)
extension_dir=$destination$("$pg_config" --sharedir)/extension
release=target/release/libpg_arrow_cache.so
built=target/${BUILD_PROFILE:-release}/libpg_arrow_cache.so
installed=$lib_dir/pg_arrow_cache.so
version=$(sed -nE "s/^default_version = '(.*)'/\1/p" pg_arrow_cache.control)
# One stamp per server: building for another one replaces $built, which the comparison below then notices.
stamp=target/install-$(printf '%s' "$pg_config" | cksum | cut -d' ' -f1).stamp

present_script() { cat sql/schema.sql sql/functions.sql sql/views.sql sql/advise.sql; }

# Succeeds if the script and the control file that are installed are those of the sources. Another checkout may have put its own there.
same_scripts() {
    present_script | cmp -s - "$extension_dir/pg_arrow_cache--$version.sql" &&
        cmp -s pg_arrow_cache.control "$extension_dir/pg_arrow_cache.control"
}

up_to_date() {
    [ -z "$destination" ] && [ -f "$stamp" ] && same_scripts && { cmp -s "$built" "$installed" || cmp -s "$release" "$installed"; } &&
        [ -z "$(find Cargo.toml Cargo.lock ./*.control scripts/build.sh scripts/install.sh src sql core \
            -newer "$stamp" -type f -print -quit 2>/dev/null)" ]
}

if up_to_date; then
    echo "install: $installed is up to date"
    exit 0
fi

as_owner() {
    if [ -n "$destination" ] || { [ -w "$lib_dir" ] && [ -w "$extension_dir" ]; }; then "$@"
    elif [ "$(id -u)" != 0 ] && command -v sudo >/dev/null; then sudo "$@"
    else echo "install: $lib_dir or $extension_dir is not writable" >&2; exit 1; fi
}

# A server that runs keeps the old file, which it has mapped: a file is replaced, never written over.
put() {
    as_owner install -m "$1" "$2" "$3.new"
    as_owner mv -f "$3.new" "$3"
}

work=$(mktemp -d)   # with the moment before the build: a source edited meanwhile must count as newer than the stamp
trap 'rm -rf "$work"' EXIT
touch "$work/started"
scripts/build.sh

as_owner install -d "$lib_dir" "$extension_dir"
present_script >"$work/script.sql"
put 755 "$built" "$installed"
put 644 "$work/script.sql" "$extension_dir/pg_arrow_cache--$version.sql"
put 644 pg_arrow_cache.control "$extension_dir/pg_arrow_cache.control"
[ -n "$destination" ] || touch -r "$work/started" "$stamp"
echo "install: $installed"
