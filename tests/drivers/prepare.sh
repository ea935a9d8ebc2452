#!/usr/bin/env bash
# Makes what the drivers' programs need, in target/drivers: a Python environment, the jar of pgjdbc, the packages of Node, and the programs in
# Java and Go. What cannot be had is named and left out; run.py then reports its modes as NOT RUN. Run by scripts/setup.sh drivers.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
made=$here/../../target/drivers
jdbc=42.7.14
jdbc_sha256=73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c
maven=https://repo1.maven.org/maven2/org/postgresql/postgresql

say() { printf 'setup: %s\n' "$*"; }

# Runs a step if what it is made from has changed since it last succeeded: step NAME FILE… -- COMMAND…
step() {
    local name=$1 stamp=$made/$1.stamp sources=() sum
    shift
    while [ "$1" != -- ]; do sources+=("$1"); shift; done
    shift
    sum=$(cat "${sources[@]}" "${BASH_SOURCE[0]}" | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ] && return 0
    say "preparing $name in target/drivers"
    rm -f "$stamp"
    if "$@"; then printf '%s\n' "$sum" >"$stamp"; else say "$name could not be made: its modes will not be run"; fi
}

python_packages() {
    python3 -m venv --clear "$made/venv" &&
        "$made/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt"
}

node_packages() {
    command -v npm >/dev/null || return 1
    rm -rf "$made/node"
    mkdir -p "$made/node"
    cp "$here"/programs/node/package*.json "$made/node/"
    npm --prefix "$made/node" ci --ignore-scripts --omit=optional --silent --no-audit --no-fund >/dev/null
}

java_program() {
    local jar=$made/pgjdbc.jar
    command -v javac >/dev/null || return 1
    rm -rf "$jar" "$made/java"
    curl --fail --silent --show-error --location --max-time 300 -o "$jar.part" "$maven/$jdbc/postgresql-$jdbc.jar" &&
        printf '%s  %s\n' "$jdbc_sha256" "$jar.part" | sha256sum --check --quiet &&
        mv "$jar.part" "$jar" &&
        javac -Xlint:all -d "$made/java" -cp "$jar" "$here/programs/java/ReadJdbc.java"
}

go_program() {
    command -v go >/dev/null || return 1
    # The Go that is there: GOTOOLCHAIN keeps newer ones from downloading another.
    (cd "$here/programs/go" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o "$made/read_pgx" .)
}

mkdir -p "$made"
step python "$here/requirements.txt" -- python_packages
step node "$here"/programs/node/package*.json -- node_packages
step java "$here/programs/java/ReadJdbc.java" -- java_program
step go "$here"/programs/go/* -- go_program
