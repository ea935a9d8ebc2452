"""scripts/lint-layers.py finds each breach that is planted into a small tree, and prints its file and line."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

LINT = Path(__file__).resolve().parents[2] / "scripts" / "lint-layers.py"

# A tree without a breach. Comments and strings hold what would be one in code.
CLEAN = {
    "core/Cargo.toml": "[package]\n# not pgrx\n",
    "core/src/lib.rs": "pub use cache::store::Store;\npub use formats::Form;\npub use room::Room;\npub mod cache;\npub mod formats;\npub mod room;\n",
    "core/src/cache/mod.rs": "pub mod store;\n",
    "core/src/cache/store.rs": "use crate::Room;\npub struct Store;\n",
    "core/src/formats/mod.rs": "pub struct Form;\n",
    "core/src/room.rs": "pub struct Room;\n",
    "src/lib.rs": "mod arrow;\nmod hooks;\nmod pg;\nmod query;\nmod serve;\nfn init() { hooks::install(); }\n",
    "src/hooks/mod.rs": "use crate::serve::{self, rows::{Rows, read}};\npub fn install() { pg_sys::planner_hook = Some(planner); }\n",
    "src/serve/mod.rs": "mod hold;\npub mod rows;\npub use hold::Hold;\n",
    "src/serve/hold.rs": "use super::rows::Rows;\npub struct Hold;\n",
    "src/serve/rows.rs": "use crate::{arrow, pg::compat as server};\n",
    "src/arrow/mod.rs": "use arrow_cache_core::Form;\n",
    "src/query/mod.rs": '// crate::arrow\n/* crate::lookup */\nconst TEXT: &str = "crate::serve thread_local! \\" {";\n'
                        "const RAW: &str = r#\"\" crate::hooks::x\"#;\nconst QUOTE: char = '\"';\nfn after<'a>() { crate::pg::compat::f() }\n",
    "src/query/key.rs": "use crate::pg;\n",
    "src/query/decomposition.rs": "use crate::pg;\n",
    "src/pg/mod.rs": "pub mod compat;\n",
    "src/pg/compat.rs": '#[cfg(feature = "pg15")]\nunsafe extern "C" {\n    fn f();\n}\n',
    "src/shmem.rs": "use pg_sys::LWLock;\nuse arrow_cache_core::Store;\n",
    "src/settings.rs": "use pgrx::GucSetting;\n",
    "src/error.rs": "use pgrx::PgSqlErrorCode;\nmod settings {}\nmod inner {\n    use super::settings;\n}\n",
}

LONG = "fn long(\n    a: [u8; 4],\n) {\n" + "    a();\n" * 57 + "}\n"

# Name: (file, its new text, where the breach is reported, rule). Where: a line of that file, or FILE:LINE.
PLANTED = {
    "comment_that_is_too_wide": ("src/serve/rows.rs", "\n//" + " wide" * 24 + "\n", 2, "122 columns, at most 120 in a comment"),
    "comment_that_asks": ("src/serve/rows.rs", "\n/// Is it so?\n", 2, "a comment states"),
    "import_of_a_room_above": ("src/serve/rows.rs", "\nuse crate::hooks::install;\n", 2, "serve does not import hooks"),
    "import_over_several_lines": ("src/serve/rows.rs", "use crate::{\n    arrow::{self, x::{Y, Z}},\n    hooks::{\n        install,\n    },\n};\n", 4,
                                  "serve does not import hooks"),
    "import_in_a_group": ("src/pg/mod.rs", "use crate::{pg::compat, serve};\npub mod compat;\n", 1, "pg does not import serve"),
    "path_inside_a_function": ("src/error.rs", "fn f() {\n    crate::pg::compat::f();\n}\n", 2, "error does not import pg"),
    "path_of_a_macro": ("src/pg/mod.rs", "macro_rules! m {\n    () => { $crate::serve::hold() };\n}\n", 2, "pg does not import serve"),
    "path_that_climbs": ("src/pg/mod.rs", "pub mod compat;\nuse super::serve::Hold;\n", 2, "pg does not import serve"),
    "renamed_import": ("src/pg/mod.rs", "use crate::settings as own;\n", 1, "pg does not import settings"),
    "reexport": ("src/arrow/mod.rs", "pub(crate) use crate::serve::Hold;\n", 1, "arrow does not import serve"),
    "rooms_side_by_side": ("src/query/mod.rs", "use crate::arrow;\n", 1, "query does not import arrow"),
    "rooms_side_by_side_the_other_way": ("src/arrow/mod.rs", "use crate::query;\n", 1, "arrow does not import query"),
    "import_of_lib": ("src/serve/rows.rs", "\n\nuse crate::init;\n", 3, "nothing imports lib.rs"),
    "import_of_lib_from_below": ("src/pg/mod.rs", "use super::init;\n", 1, "nothing imports lib.rs"),
    "unknown_room": ("src/attic/mod.rs", "\n", 1, "attic is no room"),
    "unknown_file": ("src/helpers.rs", "\n", 1, "helpers is no room"),
    "unknown_room_of_the_core": ("core/src/attic.rs", "\n", 1, "attic is no room"),
    "rooms_of_the_core": ("core/src/formats/mod.rs", "pub struct Form;\nuse crate::cache::store;\n", 2, "formats does not import cache"),
    "rooms_of_the_core_through_lib": ("core/src/cache/store.rs", "pub struct Store;\nuse crate::{Form, Room};\n", 2, "cache does not import formats"),
    "foundation_of_the_core": ("core/src/room.rs", "pub struct Room;\nuse crate::Store;\n", 2, "room does not import cache"),
    "circle": ("src/serve/rows.rs", "\npub use super::hold::Hold;\n", "src/serve/hold.rs:1", "2 files import each other: src/serve/hold.rs:1 rows.rs, src/serve/rows.rs:2 hold.rs"),
    "circle_through_a_reexport": ("src/serve/rows.rs", "use super::Hold;\n", "src/serve/hold.rs:1", "2 files import each other: src/serve/hold.rs:1 rows.rs, src/serve/rows.rs:1 hold.rs"),
    "circle_with_the_parent": ("src/serve/hold.rs", "use super::LIMIT;\npub struct Hold;\n", 1, "2 files import each other"),
    "storage": ("src/query/mod.rs", "use arrow_cache_core::{Form, Store};\n", 1, "query knows no storage"),
    "hook": ("src/serve/rows.rs", "\nfn f() { pg_sys::planner_hook = None; }\n", 2, "only src/hooks/ assigns hooks"),
    "lock": ("src/serve/rows.rs", "\n\nuse pg_sys::LWLockAcquire;\n", 3, "only src/shmem.rs names LWLocks"),
    "version": ("src/serve/rows.rs", '#[cfg(not(feature = "pg17"))]\n', 1, "only src/pg/compat depends on the server version"),
    "setting": ("src/serve/rows.rs", "use pgrx::GucSetting;\n", 1, "only src/settings.rs holds settings"),
    "sqlstate": ("src/serve/rows.rs", "use pgrx::PgSqlErrorCode;\n", 1, "only src/error.rs names SQLSTATEs"),
    "server_function": ("src/serve/rows.rs", '\nunsafe extern "C-unwind" {\n    fn f();\n}\n', 2, "only src/pg/ declares functions of the server"),
    "guarded_call": ("src/serve/rows.rs", "\nfn f() { kept!(pg_sys::palloc(1)); pg_sys::palloc(1); }\n", 2, "functions of the server are called through"),
    "guarded_function": ("src/serve/rows.rs", "\n#[pgrx::pg_guard]\n", 2, "functions of the server are called through"),
    "thread_local": ("src/pg/mod.rs", "\nthread_local! {}\n", 2, "never thread_local!"),
    "try_reserve": ("src/pg/mod.rs", "fn f() {\n    v.try_reserve_exact(4);\n}\n", 2, "buffers grow through Room"),
    "climbing_twice": ("src/serve/hold.rs", "pub struct Hold;\nuse super::super::arrow;\n", 2, "a path that climbs twice"),
    "long_file": ("src/serve/rows.rs", "\n// no code\n" + "const A: u8 = 1;\n" * 401, 403, "401 lines of code, at most 400"),
    "long_file_among_the_tests_of_the_core": ("core/tests/t.rs", "const A: u8 = 1;\n" * 401, 401, "401 lines of code, at most 400"),
    "long_function": ("src/serve/rows.rs", "\n" + LONG, 2, "fn long has 61 lines, at most 60"),
    "long_function_of_the_core": ("core/src/room.rs", "pub struct Room;\n" + LONG, 2, "fn long has 61 lines, at most 60"),
    "kernel": ("src/query/key.rs", "use super::decomposition;\n", 1, "the kernel of trust does not import src/query/decomposition.rs"),
    "server_in_the_core": ("core/src/room.rs", "pub struct Room;\nuse pgrx::pg_sys;\n", 2, "core knows no PostgreSQL"),
    "server_in_the_manifest": ("core/Cargo.toml", "[dependencies]\npgrx = '1'\n", 2, "core knows no PostgreSQL"),
}


def lint(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = Path(root) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return subprocess.run([LINT, root], text=True, capture_output=True)


class Layers(unittest.TestCase):
    def test_clean(self):
        done = lint(CLEAN)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (f"lint-layers: {len(CLEAN) - 1} files keep the layering rules\n", "", 0))

    def test_long_function_without_its_last_line(self):
        self.assertEqual(lint({**CLEAN, "src/serve/rows.rs": LONG.replace("    a();\n", "", 1)}).returncode, 0)

    def test_no_tree(self):
        done = lint({"src/lib.rs": ""})
        self.assertIn("has no src/ and core/src/", done.stderr)
        self.assertNotEqual(done.returncode, 0)


def planted(file, text, where, rule):
    def test(self):
        done = lint({**CLEAN, file: text})
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stdout, rf"\A{re.escape(where if isinstance(where, str) else f'{file}:{where}')}: .*{re.escape(rule)}.*\n\Z")
    return test


for name, case in PLANTED.items():
    setattr(Layers, f"test_{name}", planted(*case))

if __name__ == "__main__":
    unittest.main()
