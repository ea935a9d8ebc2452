#!/usr/bin/env bash
# Builds the extension in release mode and installs it for $PG_CONFIG. Does nothing when what is installed is what the
# present sources build.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
export PGRX_PG_CONFIG_PATH=$pg_config
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

lib_dir=$("$pg_config" --pkglibdir)
extension_dir=$("$pg_config" --sharedir)/extension
installed=$lib_dir/pg_arrow_cache.so
built=target/release/libpg_arrow_cache.so
# One stamp per server: building for another one replaces $built, which the comparison below then notices.
stamp=target/install-$(printf '%s' "$pg_config" | cksum | cut -d' ' -f1).stamp

up_to_date() {
    [ -f "$stamp" ] && [ -f "$extension_dir/pg_arrow_cache.control" ] && cmp -s "$built" "$installed" &&
        [ -z "$(find Cargo.toml Cargo.lock ./*.control src sql core -newer "$stamp" -type f -print -quit 2>/dev/null)" ]
}

if up_to_date; then
    echo "install: $installed is up to date"
    exit 0
fi

privilege=()
if [ ! -w "$lib_dir" ] || [ ! -w "$extension_dir" ]; then
    [ "$(id -u)" != 0 ] || { echo "install: $lib_dir is not writable" >&2; exit 1; }
    # cargo-pgrx would copy over the library in place, under the feet of a server that has it mapped.
    sudo rm -f "$installed"
    privilege=(--sudo)
fi

started=$(mktemp)   # a source edited during the build must count as newer than the stamp
trap 'rm -f "$started"' EXIT
cargo pgrx install --release --pg-config "$pg_config" "${privilege[@]}"
touch -r "$started" "$stamp"
