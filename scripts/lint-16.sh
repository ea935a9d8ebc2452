#!/usr/bin/env bash
# Compiles the library for PostgreSQL 16 and checks it with clippy. No release of Debian has that server, so the bindings
# are those that pgrx keeps for its documentation: `cfg(docsrs)` selects them, for the crate pgrx-pg-sys alone. Crates that
# know no server are those that `make lint` has compiled for the other version.
set -euo pipefail

if [ "${1-}" = rustc ]; then   # called by cargo in the place of the compiler
    shift
    for argument in "$@"; do
        if [ "$argument" = pgrx_pg_sys ]; then exec "$@" --cfg docsrs; fi
    done
    exec "$@"
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
mkdir -p target
wrapper=$PWD/target/rustc-16
printf '#!/bin/sh\nexec "%s" rustc "$@"\n' "$PWD/scripts/lint-16.sh" >"$wrapper"
chmod +x "$wrapper"
export DOCS_RS=1 RUSTC_WRAPPER=$wrapper
cargo clippy --locked --lib --no-default-features --features pg16 -- -D warnings
