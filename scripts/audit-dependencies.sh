#!/usr/bin/env bash
# Licences, advisories and sources of the crates, as deny.toml accepts them: scripts/audit-dependencies.sh [CHECK...]
#
# Compiles cargo-deny once, into target/tools, which takes some minutes. `advisories` fetches the database of RustSec from GitHub;
# `licenses`, `bans` and `sources` need no network.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
version=0.20.2   # builds with Rust 1.95

tools=$PWD/target/tools
if [ "$("$tools/bin/cargo-deny" --version 2>/dev/null)" != "cargo-deny $version" ]; then
    echo "audit-dependencies: compiling cargo-deny $version into target/tools"
    CARGO_TARGET_DIR=${CARGO_TARGET_DIR-$tools/target} cargo install --locked --quiet --root "$tools" --version "=$version" cargo-deny
    rm -rf "$tools/target"
fi
[ $# -gt 0 ] || set -- advisories bans licenses sources
"$tools/bin/cargo-deny" --locked check "$@"
