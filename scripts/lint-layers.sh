#!/usr/bin/env bash
# Checks the layering rules of CONTRIBUTING.md over the sources below ROOT (default: this checkout). Prints
# `file:line: rule` for every breach and fails if there was one. Comments never count.
set -euo pipefail

root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
max_lines=400
cd "$root"
if [ ! -d src ] || [ ! -d core/src ]; then
    echo "lint-layers: $root has no src/ and core/src/" >&2
    exit 2
fi

code=$(mktemp)      # every line of code:  file:line:text
paths=$(mktemp)     # every path into another module:  file:line:crate::a  or  file:line:arrow_cache_core::A
breaches=$(mktemp)
trap 'rm -f "$code" "$paths" "$breaches"' EXIT

# shellcheck disable=SC2016  # awk's own $0
find src core -name target -prune -o -name '*.rs' -print | sort |
    xargs -r awk '{ sub(/(^|[ \t])\/\/.*/, "") } /[^ \t]/ { print FILENAME ":" FNR ":" $0 }' >"$code"

# Unfolds `use crate::{a, b::{c, d}}`, over as many lines as it takes, into crate::a and crate::b: only the first
# name after the root matters to the rules. In src/*/mod.rs `super` is the crate itself.
awk '
function flush_name(at) { if (name != "") print at ":" base "::" name; name = ""; taking = 0 }
{
    split($0, part, ":"); file = part[1]; at = part[1] ":" part[2]
    text = substr($0, length(at) + 2)
    if (file ~ /^src\/[^\/]+\/mod\.rs$/) gsub(/super::/, "crate::", text)
    while (text != "") {
        if (depth == 0) {
            if (!match(text, /(^|[^A-Za-z0-9_])(crate|arrow_cache_core)::/)) break
            base = substr(text, RSTART, RLENGTH); gsub(/[^A-Za-z_]/, "", base)
            text = substr(text, RSTART + RLENGTH)
            if (substr(text, 1, 1) == "{") { depth = 1; taking = 1; name = ""; text = substr(text, 2); continue }
            match(text, /^[A-Za-z0-9_]*/); name = substr(text, 1, RLENGTH); flush_name(at)
            continue
        }
        c = substr(text, 1, 1); text = substr(text, 2)
        if (c ~ /[A-Za-z0-9_]/) { if (taking) name = name c }
        else if (c == "{") { if (depth++ == 1) flush_name(at) }
        else if (c == "}") { if (depth-- == 1) flush_name(at) }
        else if (c == "," && depth == 1) { flush_name(at); taking = 1 }
        else if (c == ":" && depth == 1) flush_name(at)
        else if (c ~ /[ \t]/ && depth == 1 && name != "") flush_name(at)
    }
    if (depth == 1 && name != "") flush_name(at)
}' "$code" >"$paths"

breach() { sed -E "s|^([^:]+:[0-9]+):.*|\1: $1|" >>"$breaches"; }

# only FILE-REGEX CODE-REGEX RULE: code that only some files of src/ may hold.
only() { { grep -E '^src/' "$code" | grep -vE "^$1:" | grep -E "^[^:]+:[0-9]+:.*($2)" || true; } | breach "$3"; }

# never FILE-REGEX PATH-REGEX RULE: modules that some files may not import.
never() { { grep -E "^$1" "$paths" | grep -E ":($2)$" || true; } | breach "$3"; }

only 'src/hooks\.rs' '\b[A-Za-z_]+_hook[[:space:]]*=[^=]' 'only src/hooks.rs assigns hooks'
only 'src/shmem\.rs' '\b(LWLock[A-Za-z]*|ShmemInitStruct|RequestAddinShmemSpace|ArenaPtr)\b' \
    'only src/shmem.rs names LWLocks and raw pointers into the segment'
only 'src/compat(\.rs|/tree\.rs)' 'feature[[:space:]]*=[[:space:]]*"pg[0-9]+"' 'only src/compat.rs depends on the server version'
only 'src/settings\.rs' '\bGucSetting\b' 'only src/settings.rs holds settings'
only 'src/error\.rs' '\b(PgSqlErrorCode|ERRCODE_[A-Z_]+)\b' 'only src/error.rs names SQLSTATEs'
only '(nothing)' '\bthread_local!' 'variables of a backend are plain statics (src/local.rs): thread-local ones may be refused memory'
only '(nothing)' '\.try_reserve(_exact)?\(' 'buffers grow through Room (core/src/room.rs)'
only '(nothing)' '\bsuper::super\b' 'a path that climbs twice starts at crate:: instead'

above='hooks|judge|quick|utility|serve|capture|verify|writes|copy|export|stats|admin|foreign|policy|portal|snapshot|why|decision_log|tally|definitions|last_word'
never 'src/arrow/' "crate::(shmem|session|write_set|$above)|arrow_cache_core::([sS]tore)" 'arrow/ knows no cache'
never 'src/query/' 'crate::shmem|arrow_cache_core::([sS]tore)' 'query/ knows no storage'
never 'src/(compat|backend|settings|error|allocator|raising)\.rs' "crate::(shmem|session|write_set|query|arrow|$above)" 'the lowest layer imports no other'
never 'src/(shmem|session|write_set)\.rs' "crate::($above)" 'shmem, session and write_set lie below what serves, captures and writes'
{ grep -E ':crate::hooks$' "$paths" | grep -vE '^src/(lib|hooks)\.rs:' || true; } | breach 'only src/lib.rs imports hooks'

# A name right below the crate's root that is no module was defined in lib.rs, which only assembles.
modules=$(find src -mindepth 1 -maxdepth 1 \( -type d -o -name '*.rs' \) ! -name lib.rs | sed -E 's|^src/||; s|\.rs$||' | paste -sd'|')
{ grep -E '^src/.*:crate::' "$paths" | grep -vE ":crate::($modules)$" || true; } | breach 'nothing imports lib.rs'

{ grep -E '^core/' "$code" | grep -E '\bpgrx\b' || true; } | breach 'core knows no PostgreSQL'
{ grep -nE '^[^#]*\bpgrx' core/Cargo.toml /dev/null || true; } | breach 'core knows no PostgreSQL'

cut -d: -f1 "$code" | sort | uniq -c |
    awk -v most="$max_lines" '$1 > most { print $2 ":" most + 1 ": " $1 " lines of code, at most " most }' >>"$breaches"

sort -t: -k1,1 -k2,2n -k3 "$breaches" | uniq
[ ! -s "$breaches" ] || exit 1
echo "lint-layers: $(cut -d: -f1 "$code" | sort -u | wc -l) files keep the layering rules"
