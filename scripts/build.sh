#!/usr/bin/env bash
# Builds the library for $PG_CONFIG: target/release/libpg_arrow_cache.so, or with BUILD_PROFILE=quick, which takes less
# time, target/quick/…. It names no directory of the machine that built it: paths in messages and debug information begin
# with `pg_arrow_cache/`, `crates/` and `rust/`.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
export PGRX_PG_CONFIG_PATH=$pg_config
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

version=$("$pg_config" --version)
major=$(sed -E 's/[^0-9]*([0-9]+).*/\1/' <<<"$version")
if ! grep -q "^pg$major = " Cargo.toml; then
    supported=$(sed -nE 's/^pg([0-9]+) = .*/\1/p' Cargo.toml | paste -sd ' ')
    echo "build: $pg_config is of $version, which pg_arrow_cache does not support; it supports PostgreSQL $supported" >&2
    exit 1
fi

# Where sources may lie, and what stands for these places. Of two that match, rustc takes the last, the C compiler too. Crates that are
# vendored lie in the project itself, and have the same names as those that cargo fetches from crates.io: the library is the same.
places=(
    "${CARGO_HOME:-$HOME/.cargo}=crates"
    "${CARGO_HOME:-$HOME/.cargo}/registry/src=crates"
    "${CARGO_HOME:-$HOME/.cargo}/registry/src/index.crates.io-1949cf8c6b5b557f=crates"
    "$(rustc --print sysroot)=rust"
    "$PWD=pg_arrow_cache"
    "$PWD/vendor=crates"
)
# Separated by the unit separator, so that paths may hold spaces.
flags=${CARGO_ENCODED_RUSTFLAGS-${RUSTFLAGS+${RUSTFLAGS// /$'\x1f'}}}
for place in "${places[@]}"; do
    flags+="${flags:+$'\x1f'}--remap-path-prefix=$place"
    CFLAGS="${CFLAGS-} $(printf '%q' "-ffile-prefix-map=$place")"
done
export CARGO_ENCODED_RUSTFLAGS=$flags CFLAGS CC_SHELL_ESCAPED_FLAGS=1

# Below target, where install.sh looks for it: the environment may name another place, and a library that an earlier build has left there
# would be installed.
unset CARGO_BUILD_TARGET
cargo build --target-dir target --locked --profile "${BUILD_PROFILE:-release}" --package pg_arrow_cache --lib --no-default-features --features "pg$major"
