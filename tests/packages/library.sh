#!/usr/bin/env bash
# What is in a package and in its -dbgsym: no path of the machine that built them, no needless library. lintian looks at both.
#
#   tests/packages/library.sh PACKAGE.deb DBGSYM.deb
set -uo pipefail

# shellcheck source=tests/packages/checks.sh
. "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
package=$1 symbols=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg-deb -x "$package" "$work/package"
dpkg-deb -x "$symbols" "$work/symbols"
library=$(find "$work/package" -name pg_arrow_cache.so)
debug=$(find "$work/symbols" -name '*.debug' -path '*/.build-id/*')
is 'the package has one library' "$(wc -l <<<"$library")" 1
is 'the -dbgsym has one file' "$(wc -l <<<"$debug")" 1
objcopy --decompress-debug-sections "$debug" "$work/debug"

# Where this machine has things: the project, the copy that was compiled, Rust, crates, homes.
machine='\.cargo|/rustup|/target/deb|/root/|/home/|/tmp/'
for place in "$PWD" "${HOME:-/root}" "${CARGO_HOME:-/root/.cargo}" "${RUSTUP_HOME:-/root/.rustup}"; do machine+="|$place/"; done
for file in "$library" "$work/debug"; do
    what=$([ "$file" = "$library" ] && echo library || echo 'debug information')
    is "the $what names no directory of this machine" "$(strings -a "$file" | grep -E -- "$machine" | sort -u)" ''
done
# The names that stand in their place. Without them, the checks above would look into the wrong file.
for name in src/lib.rs/@/pg_arrow_cache crates/arrow-array- crates/pgrx-0; do
    holds "the debug information has $name" grep -qaF "$name" "$work/debug"
done

sections=$(readelf --section-headers --wide "$library")
is 'the library is stripped' "$(grep -cE '\.(debug_|zdebug_|symtab)' <<<"$sections")" 0
build_id() { readelf --notes "$1" 2>/dev/null | sed -nE 's/.*Build ID: //p'; }
is 'the -dbgsym is for this library' "/usr/lib/debug/.build-id/$(build_id "$library" | sed -E 's|^..|&/|').debug" "${debug#"$work/symbols"}"
# pgrx puts a mark of 13 bytes there (4 of them zero) in every extension; the description of SQL objects would follow it.
size=$(sed -nE 's/.* \.pgrxsc +PROGBITS +[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+) .*/\1/p' <<<"$sections")
holds 'the library has no description of SQL objects' test $((16#${size:-0})) -le 13
is 'it needs the C library and libgcc alone' "$(ldd "$library" | sed -E 's/^\s*(\S+).*/\1/' | grep -vE '^(linux-vdso\.so\.1|/lib.*/ld-linux.*|libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1)$')" ''
is 'it shows what PostgreSQL calls and the linker wraps, alone' "$(nm --dynamic --defined-only "$library" | awk '{ print $3 }' | grep -vE '^(_PG_init|Pg_magic_func|pg_finfo_.*|.*_wrapper|arrow_cache_.*|__wrap_(errstart|CopyErrorData))$')" ''
like 'it is closed to writes after it is loaded' "$(readelf --dynamic "$library")" 'BIND_NOW|NOW'

# The package is not uploaded to Debian, so that it closes no bug there.
if command -v lintian >/dev/null; then
    holds 'lintian finds nothing' lintian --allow-root --fail-on error,warning --tag-display-limit 0 \
        --suppress-tags initial-upload-closes-no-bugs "$package" "$symbols"
else
    fails 'lintian finds nothing' 'lintian is not installed'
fi
printf '# %s: package %s bytes, library %s, debug package %s, build id %s\n' "${package##*/}" "$(stat -c %s "$package")" "$(stat -c %s "$library")" "$(stat -c %s "$symbols")" "$(build_id "$library")"
echo "1..$number"
