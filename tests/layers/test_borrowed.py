"""What src/pg/server.rs repeats of the server's headers agrees with them: functions, variables, structures and numbers. Asks the C compiler, with the
headers of the server that the library is built for. docs/architecture/borrowed.md lists what else is relied on."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

DECLARED = (ROOT / "src/pg/server.rs").read_text()
PRIMITIVES = {"c_int": "int", "c_char": "char", "c_long": "long", "c_void": "void", "usize": "size_t", "isize": "ssize_t", "bool": "bool",
              "u8": "uint8", "u16": "uint16", "i32": "int32", "i64": "int64", "pg_tm": "struct pg_tm",
              "CommMethods": "PQcommMethods", "SubXactStatus": "PgStat_SubXactStatus"}
# Headers of other libraries need not be there.
HEADERS = """#include "postgres.h"
#undef ENABLE_GSS
#undef USE_OPENSSL
#include "access/xact.h"
#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "storage/lwlock.h"
#include "utils/pgstat_internal.h"
#include "utils/timeout.h"
"""
# Of C's library, and of files of the server without a header of their own.
ELSEWHERE = {"sys/mman.h", "string.h", "utils/adt/datum.c"}
TAKE_ENUMS = {"get_timeout_active", "get_timeout_finish_time"}
STRUCTURES = """
_Static_assert(offsetof(PQcommMethods, flush) == 8, "");
_Static_assert(offsetof(PQcommMethods, flush_if_writable) == 16, "");
_Static_assert(offsetof(PQcommMethods, is_send_pending) == 24, "");
_Static_assert(offsetof(PQcommMethods, putmessage) == 32, "");
_Static_assert(offsetof(PQcommMethods, putmessage_noblock) == 40, "");
_Static_assert(sizeof(PQcommMethods) == 48, "");
_Static_assert(offsetof(PgStat_SubXactStatus, nest_level) == 0, "");
_Static_assert(offsetof(PgStat_SubXactStatus, prev) == 8, "");
_Static_assert(offsetof(PgStat_SubXactStatus, first) == 40, "");
_Static_assert(STATEMENT_TIMEOUT == 3, "");
#if PG_VERSION_NUM >= 170000
_Static_assert(TRANSACTION_TIMEOUT == 8, "");
#endif
"""


def c_type(text):
    """A type of Rust's declarations in C."""
    text = text.strip()
    pointer = re.fullmatch(r"\*(const|mut) (.+)", text)
    if pointer:
        return f"{c_type(pointer[2])} {'const ' if pointer[1] == 'const' else ''}*"
    name = re.sub(r"^pg_sys::", "", text).removesuffix("::Type")
    return {"!": "void", **PRIMITIVES}.get(name, name)


def functions():
    """(header, name, arguments, type of what is returned) of each function that is declared."""
    for comment, name, arguments, returned in re.findall(
            r"///\s+(\S+)[^\n]*\n(?:\s*///[^\n]*\n)*\s*pub (?:safe )?fn (\w+)\(([^)]*)\)(?: -> ([^;]+))?;", DECLARED):
        yield comment.rstrip(";:,"), name, [part.split(":", 1)[1] if ":" in part else part for part in arguments.split(",") if part.strip()], returned


def prototype(name, arguments, returned):
    """Pointers to constants come out right behind their type: `char const *`."""
    def typed(text):
        return re.sub(r"^(.*) (const )\*$", r"\2\1 *", c_type(text)) if "..." not in text else "..."
    return f"extern {typed(returned) if returned else 'void'} {name}({', '.join(map(typed, arguments)) or 'void'});"


def compiler(source, option):
    command = [os.environ.get("CC", "cc"), option, "-w", "-xc", f"-I{cluster.pg_config('--includedir-server')}", "-"]
    return subprocess.run(command, input=HEADERS + source, text=True, capture_output=True)


def compiled(source):
    """What the compiler says of a file, nothing if it is right."""
    return compiler(source, "-fsyntax-only").stderr


class Borrowed(unittest.TestCase):
    def test_functions_are_those_of_the_headers(self):
        # A pointer to what only the server knows stands for any pointer, and an integer for an enum.
        checked = [(header, prototype(name, arguments, returned)) for header, name, arguments, returned in functions()
                   if header not in ELSEWHERE and "c_void" not in f"{arguments}{returned}" and name not in TAKE_ENUMS]
        self.assertGreater(len(checked), 40)
        headers = "".join(f'#include "{header}"\n' for header in sorted({header for header, _ in checked}))
        self.assertEqual(compiled(headers + "\n".join(declared for _, declared in checked)), "")

    def test_a_wrong_declaration_is_found(self):
        self.assertIn("conflicting types", compiled("extern int GetCurrentTransactionNestLevel(int level);\n"))
        self.assertIn("static assertion", compiled('_Static_assert(offsetof(PQcommMethods, flush) == 16, "");\n'))

    def test_structures_and_numbers_are_those_of_the_headers(self):
        self.assertEqual(compiled(STRUCTURES), "")
        self.assertEqual(compiler("AddinShmemInitLock", "-E").stdout.splitlines()[-1], "(&MainLWLockArray[21].lock)")


if __name__ == "__main__":
    unittest.main()
