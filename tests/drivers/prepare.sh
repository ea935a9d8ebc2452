#!/usr/bin/env bash
# Makes what the drivers' programs need, in target/drivers: a Python environment, the jar of pgjdbc, the packages of Node, and the programs in
# Java and Go; and the same for the tools of tools.py, and the examples of clients/. What cannot be had is named and left out; run.py then reports its modes as NOT RUN. Run by scripts/setup.sh drivers.
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
        javac -Xlint:all -d "$made/java" -cp "$jar" "$here"/programs/java/*.java
}

go_program() {
    command -v go >/dev/null || return 1
    # The Go that is there: GOTOOLCHAIN keeps newer ones from downloading another.
    (cd "$here/programs/go" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o "$made/read_pgx" .)
}

# Without their scripts, which would download programs. Prisma's client is made of its schema; the program that Prisma would download for
# that takes no part in it.
tool_packages() {
    command -v npm >/dev/null || return 1
    rm -rf "$made/tools"
    mkdir -p "$made/tools"
    cp "$here"/programs/tools/node/{package.json,schema.prisma} "$made/tools/"
    npm --prefix "$made/tools" install --ignore-scripts --no-package-lock --silent --no-audit --no-fund >/dev/null &&
        (cd "$made/tools" && PRISMA_SCHEMA_ENGINE_BINARY=/bin/true node_modules/.bin/prisma generate --schema schema.prisma >/dev/null)
}

tool_jars() {
    command -v mvn >/dev/null || return 1
    rm -rf "$made/jars"
    mvn --quiet --batch-mode --file "$here/programs/tools/java/pom.xml" dependency:copy-dependencies -DoutputDirectory="$made/jars"
}

tool_programs() {
    [ -d "$made/java" ] && [ -d "$made/jars" ] || return 1
    rm -rf "$made/java-tools"
    javac -Xlint:all,-processing,-classfile -proc:none -d "$made/java-tools" -cp "$made/pgjdbc.jar:$made/java:$made/jars/*" \
        "$here"/programs/tools/java/*.java "$here/../../clients/java/ReadArrow.java"
}

go_example() {
    command -v go >/dev/null || return 1
    (cd "$here/../../clients/go" && GOTOOLCHAIN=local GOFLAGS=-mod=readonly go build -o "$made/read_arrow" .)
}

mkdir -p "$made"
step python "$here/requirements.txt" -- python_packages
step node "$here"/programs/node/package*.json -- node_packages
step java "$here"/programs/java/*.java -- java_program
step go "$here"/programs/go/* -- go_program
step tools "$here"/programs/tools/node/{package.json,schema.prisma} -- tool_packages
step jars "$here/programs/tools/java/pom.xml" -- tool_jars
step java-tools "$here"/programs/{java,tools/java}/*.java "$here/programs/tools/java/pom.xml" "$here/../../clients/java/ReadArrow.java" -- tool_programs
step go-example "$here"/../../clients/go/* -- go_example
