# shellcheck shell=bash
# Assertions for the scripts beside this file, which source it. Each prints a line `ok N - what` or `not ok N - what`.

number=0

passes() { number=$((number + 1)); printf 'ok %d - %s\n' "$number" "$1"; }

# fails WHAT TEXT: TEXT is what was found instead.
fails() { number=$((number + 1)); printf 'not ok %d - %s\n' "$number" "$1"; printf '%s\n' "$2" | head -n 20 | sed 's/^/#   /'; }

# is WHAT GOT WANTED
is() { if [ "$2" = "$3" ]; then passes "$1"; else fails "$1" "got: $2
wanted: $3"; fi; }

# like WHAT GOT PATTERN (an extended regular expression)
like() { if grep -qE -- "$3" <<<"$2"; then passes "$1"; else fails "$1" "got: $2
wanted: $3"; fi; }

# holds WHAT COMMAND...
holds() {
    local what=$1 said; shift
    if said=$("$@" 2>&1); then passes "$what"; else fails "$what" "$said"; fi
}
