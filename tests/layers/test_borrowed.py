"""What src/pg/server.rs and float_text.rs repeat of headers agrees with them: every function and variable that they declare, by its types; of structures
where their fields lie, not what functions in them take. So do numbers and names of files that other files repeat, and no header knows more marks of
processes or files that lead recovery. Asks the C compiler, with the headers of the server that the library is built for. docs/architecture/borrowed.md
lists what else is relied on."""

import itertools
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import cluster  # noqa: E402  (it lives beside the other scripts)

DECLARED = "".join((ROOT / "src/pg" / name).read_text() for name in ("server.rs", "float_text.rs"))
PRIMITIVES = {"c_int": "int", "c_char": "char", "c_long": "long", "c_void": "void", "usize": "size_t", "isize": "ssize_t", "bool": "bool",
              "u8": "uint8", "u16": "uint16", "i32": "int32", "i64": "int64", "f32": "float", "f64": "double", "pg_tm": "struct pg_tm",
              "CommMethods": "PQcommMethods", "SubXactStatus": "PgStat_SubXactStatus"}
# Headers of other libraries need not be there.
HEADERS = """#include "postgres.h"
#undef ENABLE_GSS
#undef USE_OPENSSL
#undef USE_ICU
#include <sys/mman.h>
#include <time.h>
#include "access/heapam_xlog.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_auth_members.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_language.h"
#include "catalog/pg_range.h"
#include "common/shortest_dec.h"
#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "nodes/pg_list.h"
#include "pgstat.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/bytea.h"
#include "utils/fmgrtab.h"
#include "utils/memutils.h"
#include "utils/pgstat_internal.h"
#include "utils/timeout.h"
"""
# What is declared as a pointer to anything, or as an integer for an enum, by the place of the argument (-1 is what is returned): what headers have there.
# Versions differ in constants alone.
INSTEAD = {
    "ParseCommitRecord": {1: ["xl_xact_commit *"]},
    "get_timeout_active": {0: ["TimeoutId"]},
    "get_timeout_finish_time": {0: ["TimeoutId"]},
    "prepare_sql_fn_parse_info": {-1: ["SQLFunctionParseInfoPtr"]},
    "secure_write": {1: ["void *", "const void *"]},
    "sql_fn_parser_setup": {1: ["SQLFunctionParseInfoPtr"]},
}
# File, constant of it, what it repeats: a word for each number.
NUMBERS = [
    ("src/pg/server.rs", "MADV_DONTNEED", "MADV_DONTNEED"),
    ("src/serve/column_formats.rs", "BYTEA_OUTPUT_HEX", "BYTEA_OUTPUT_HEX"),
    ("src/export/ipc_stream.rs", "LARGEST_BYTEA", "MaxAllocSize"),
    ("src/pg/float_text.rs", "LONGEST_FLOAT", "(DOUBLE_SHORTEST_DECIMAL_LEN-1)"),
    ("src/pg/object_ids.rs", "INTERNAL_LANGUAGE", "INTERNALlanguageId"),
    ("src/pg/object_ids.rs", "C_LANGUAGE", "ClanguageId"),
    ("src/pg/object_ids.rs", "SQL_LANGUAGE", "SQLlanguageId"),
    ("src/query/decomposition/algebra.rs", "COMBINES", "Anum_pg_aggregate_aggcombinefn"),
    ("src/query/decomposition/algebra.rs", "WRITES", "Anum_pg_aggregate_aggserialfn"),
    ("src/query/decomposition/algebra.rs", "READS", "Anum_pg_aggregate_aggdeserialfn"),
    ("src/query/decomposition/algebra.rs", "STATE", "Anum_pg_aggregate_aggtranstype"),
    ("src/query/volatility/definition.rs", "PARTS", "Anum_pg_aggregate_aggtransfn Anum_pg_aggregate_aggmfinalfn"),
    ("src/query/volatility/definition.rs", "SORT_OPERATOR", "Anum_pg_aggregate_aggsortop"),
    ("src/query/volatility/definition.rs", "STATES", "Anum_pg_aggregate_aggtranstype Anum_pg_aggregate_agginitval "
                                                     "Anum_pg_aggregate_aggmtranstype Anum_pg_aggregate_aggminitval"),
    ("src/query/volatility/definition.rs", "FUNCTION", "Anum_pg_cast_castfunc"),
    ("src/query/types.rs", "BOUND", "Anum_pg_range_rngsubtype"),
    ("src/query/types.rs", "OPERATOR_CLASS", "Anum_pg_range_rngsubopc"),
    ("src/query/types.rs", "FUNCTIONS", "Anum_pg_range_rngcanonical Anum_pg_range_rngsubdiff"),
    ("src/invalidation/replay/rows.rs", "OPERATION", "XLOG_HEAP_OPMASK"),
    ("src/invalidation/replay/rows.rs", "INSERT", "XLOG_HEAP_INSERT"),
    ("src/invalidation/replay/rows.rs", "DELETE", "XLOG_HEAP_DELETE"),
    ("src/invalidation/replay/rows.rs", "UPDATE", "XLOG_HEAP_UPDATE"),
    ("src/invalidation/replay/rows.rs", "HOT_UPDATE", "XLOG_HEAP_HOT_UPDATE"),
    ("src/invalidation/replay/rows.rs", "INPLACE", "XLOG_HEAP_INPLACE"),
    ("src/invalidation/replay/rows.rs", "MULTI_INSERT", "XLOG_HEAP2_MULTI_INSERT"),
]
# The same for texts.
TEXTS = [
    ("src/pg/control_file.rs", "CONTROL_FILE", "XLOG_CONTROL_FILE"),
    ("src/pg/control_file.rs", "STANDBY_FILE", "STANDBY_SIGNAL_FILE"),
    ("src/pg/control_file.rs", "OTHER_RECOVERY_FILES", "RECOVERY_SIGNAL_FILE BACKUP_LABEL_FILE"),
    ("src/restart.rs", "FILE", 'PGSTAT_STAT_PERMANENT_DIRECTORY"/pg_arrow_cache.saved"'),
]
# All macros whose names begin or end so. Of another one somebody has to find out what follows from it.
KNOWN = {
    # A process with a mark whose transactions snapshots leave out must publish nothing (`backend::is_vacuuming`).
    r"PROC_[A-Z_]+ 0x\w+": {"PROC_IS_AUTOVACUUM", "PROC_IN_VACUUM", "PROC_IN_SAFE_IC", "PROC_VACUUM_FOR_WRAPAROUND", "PROC_IN_LOGICAL_DECODING",
                            "PROC_AFFECTS_ALL_HORIZONS"},
    # A file that has the server recover otherwise (`control_file::shut_down`). The map of tablespaces counts beside the label alone; the last one promotes.
    r"\w+_SIGNAL_FILE|BACKUP_LABEL\w*|TABLESPACE_MAP\w*": {"RECOVERY_SIGNAL_FILE", "STANDBY_SIGNAL_FILE", "BACKUP_LABEL_FILE", "BACKUP_LABEL_OLD",
                                                           "TABLESPACE_MAP", "TABLESPACE_MAP_OLD", "PROMOTE_SIGNAL_FILE"},
}
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
// Short records of ends (src/pg/wal_record.rs): the time, what else there is, the prepared transaction; aborts as commits.
_Static_assert(sizeof(((xl_xact_commit *) 0)->xact_time) == 8 && offsetof(xl_xact_commit, xact_time) == 0, "");
_Static_assert(sizeof(((xl_xact_abort *) 0)->xact_time) == 8 && offsetof(xl_xact_abort, xact_time) == 0, "");
_Static_assert(MinSizeOfXactCommit == 8 && MinSizeOfXactAbort == 8 && sizeof(xl_xact_xinfo) == 4, "");
_Static_assert(sizeof(xl_xact_twophase) == 4, "");
// Larger pieces are asked for in another way (src/shmem.rs), and no function called by its number has this place (src/pg/built_in_functions.rs).
_Static_assert(MaxAllocSize == (1 << 30) - 1, "");
_Static_assert(InvalidOidBuiltinMapping == 0xFFFF, "");
// Cells behind the head of a list (src/pg/tree_making.rs).
_Static_assert(offsetof(List, initial_elements) == sizeof(List), "");
// The column ROLE_OF_MEMBERSHIP (src/pg/compat/permissions.rs).
_Static_assert(Anum_pg_auth_members_roleid == (PG_VERSION_NUM < 160000 ? 1 : 2), "");
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
    for header, name, arguments, returned in re.findall(
            r"///\s+(\S+\.h)\b[^\n]*\n(?:\s*///[^\n]*\n)*\s*(?:pub )?(?:safe )?fn (\w+)\(([^)]*)\)(?: -> ([^;]+))?;", DECLARED):
        yield header, name, [part.split(":", 1)[1] if ":" in part else part for part in arguments.split(",") if part.strip()], returned


def variables():
    """(header, name, type) of each variable that is declared."""
    return re.findall(r"///[^\n]*?([\w/]+\.h)\b[^\n]*\n(?:\s*///[^\n]*\n)*\s*pub static (?:mut )?(\w+): ([^;]+(?:; \d+\])?);", DECLARED)


def prototypes(name, arguments, returned):
    """What the header may have. Pointers to constants come out right behind their type: `char const *`."""
    def typed(text):
        return re.sub(r"^(.*) (const )\*$", r"\2\1 *", c_type(text)) if "..." not in text else "..."
    instead = INSTEAD.get(name, {})
    choices = [instead.get(place, [typed(argument)]) for place, argument in enumerate(arguments)]
    result = instead.get(-1, [typed(returned) if returned else "void"])
    return [f"extern {first} {name}({', '.join(others) or 'void'});" for first, *others in itertools.product(result, *choices)]


def typed_as(name, declared):
    """An assertion that a variable has a type, whether or not it, or what it points to, is constant."""
    array = re.fullmatch(r"\[(\w+); 0\]", declared)
    name, declared = (f"{name}[0]", array[1]) if array else (name, declared)
    types = {c_type(declared), c_type(declared).replace(" const *", " *")}
    return f"_Static_assert({' || '.join(f'__builtin_types_compatible_p(__typeof__({name}), {each})' for each in sorted(types))}, \"{name}\");"


def compiler(source, option):
    command = [os.environ.get("CC", "cc"), *option.split(), "-w", "-xc", f"-I{cluster.pg_config('--includedir-server')}", "-"]
    return subprocess.run(command, input=HEADERS + source, text=True, capture_output=True)


def compiled(source):
    """What the compiler says of a file, nothing if it is right."""
    return compiler(source, "-fsyntax-only").stderr


def included(headers):
    return "".join(f'#include "{header}"\n' for header in sorted(set(headers)))


class Borrowed(unittest.TestCase):
    def test_each_declaration_is_found(self):
        self.assertEqual([name for _, name, _, _ in functions()], re.findall(r"\bfn (\w+)\([^)]*\)(?: -> [^;{]+)?;", DECLARED))
        self.assertEqual([name for _, name, _ in variables()], re.findall(r"\bpub static (?:mut )?(\w+)", DECLARED))
        self.assertGreater(len(list(functions())), 50)
        self.assertGreater(len(variables()), 5)

    def test_functions_are_those_of_the_headers(self):
        headers = included(header for header, _, _, _ in functions())
        alike = [prototypes(*declared) for _, *declared in functions()]
        self.assertEqual(compiled(headers + "\n".join(choices[0] for choices in alike if len(choices) == 1)), "")
        for choices in alike:
            if len(choices) > 1:
                self.assertIn("", [compiled(headers + choice) for choice in choices], choices)

    def test_variables_are_those_of_the_headers(self):
        self.assertEqual(compiled(included(header for header, _, _ in variables()) + "\n".join(typed_as(*declared) for _, *declared in variables())), "")

    def test_numbers_are_those_of_the_headers(self):
        alike = []
        for path, name, repeated in NUMBERS:
            [written] = re.findall(rf"\bconst {name}: [^=]+ = ([^;]+);", (ROOT / path).read_text())
            numbers = re.findall(r"\b\d\w*", written.replace("_", ""))
            self.assertEqual(len(numbers), len(repeated.split()), (path, name))
            alike += [f'_Static_assert({word} == {number}, "{path}: {name}");\n' for word, number in zip(repeated.split(), numbers)]
        self.assertEqual(compiled("".join(alike)), "")

    def test_texts_are_those_of_the_headers(self):
        for path, name, repeated in TEXTS:
            [written] = re.findall(rf"\bconst {name}: [^=]+ = ([^;]+);", (ROOT / path).read_text())
            texts = re.findall(r'"([^"]*)"', written)
            found = compiler("\n".join(repeated.split()), "-E").stdout.splitlines()[-len(texts):]
            self.assertEqual(texts, ["".join(re.findall(r'"([^"]*)"', line)) for line in found], (path, name))

    def test_no_header_knows_more(self):
        macros = compiler("", "-dM -E").stdout
        for names, known in KNOWN.items():
            self.assertEqual({found.split()[0] for found in re.findall(rf"^#define ({names})\b", macros, re.M)}, known)

    def test_a_wrong_declaration_is_found(self):
        self.assertIn("conflicting types", compiled("extern int GetCurrentTransactionNestLevel(int level);\n"))
        self.assertIn("static assertion", compiled('_Static_assert(offsetof(PQcommMethods, flush) == 16, "");\n'))
        for name, declared in (("bytea_output", "i64"), ("PqCommMethods", "*const SubXactStatus"), ("fmgr_builtin_oid_index", "[u8; 0]")):
            self.assertIn("static assertion", compiled(included(["libpq/libpq.h", "utils/bytea.h", "utils/fmgrtab.h"]) + typed_as(name, declared)))

    def test_structures_are_those_of_the_headers(self):
        self.assertEqual(compiled(STRUCTURES), "")
        self.assertEqual(compiler("AddinShmemInitLock", "-E").stdout.splitlines()[-1], "(&MainLWLockArray[21].lock)")


if __name__ == "__main__":
    unittest.main()
