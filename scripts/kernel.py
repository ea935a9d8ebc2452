#!/usr/bin/env python3
"""The kernel of trust: the files in which a mistake gives a wrong answer, in reading order. Prints their lines without tests.

    scripts/kernel.py

scripts/lint-layers.py checks that they import only each other and what lies BELOW them, so that nothing that makes answers quick decides on
whether they are right. docs/architecture/overview.md tells what each part answers.

Some files stand beside these in src/query, and are none of them, since no answer is given or stored by what they say:

* checking.rs: which reason for a refusal is told. The refusal stands before.
* repeatability.rs: which answers are compared at verify_sample_rate. A mistake there is a false alarm, or an answer that is not compared.
* clock_settling.rs: which values of the clock are worth being in a key. Either answer makes a right one.
* statement_text.rs: what a hint asks. Whoever asks for outdated answers (src/lookup/staleness.rs) gets others than the kernel's.
"""

import re
from pathlib import Path

# Title: beginnings of names of files. A file belongs to the first part that names it.
KERNEL = {
    "the protocol": ["core/src/versions/"],
    "the rules": ["src/lookup/rules.rs", "src/lookup/value_rules.rs", "src/lookup/portal.rs", "src/serve/started_under.rs",
                  "src/query/asked_values.rs", "src/query/known_values.rs", "src/query/value_hash.rs", "src/query/unread_columns.rs",
                  "src/query/limited_rows.rs"],
    "on a standby": ["core/src/replay/", "src/invalidation/replay/"],
    "over a restart": ["src/restart.rs", "src/pg/control_file.rs", "src/pg/software.rs"],
    "what a transaction publishes": ["src/invalidation/", "src/pg/transaction_changes.rs", "src/pg/own_rows.rs"],
    "times": ["src/query/clock/"],
    "the same question": ["src/query/identity", "src/query/key.rs", "src/query/hashes.rs", "src/query/asker.rs", "src/query/environment.rs",
                          "src/query/present_settings.rs", "src/query/parameters.rs", "src/query/statement_terms.rs", "src/query/row_types_and_settings.rs", "src/query/verdict.rs"],
    "may it be cached": ["src/query/" + name for name in (
        "eligibility", "function_table", "node_table", "volatility", "types", "relations", "relation_policy", "opened_relations", "planner_input",
        "trusted_extensions", "constant_texts", "unused_columns", "handed_times", "enclosing", "name_resolution", "bytewise")],
}
BELOW = ["src/pg/", "src/error/", "src/settings.rs", "src/session/", "src/shmem.rs", "core/src/atomics.rs", "core/src/room.rs"]


def part_of(name):
    """The part of the kernel that a file belongs to, or None."""
    return next((title for title, starts in KERNEL.items() if name.startswith(tuple(starts))), None)


def files(root):
    """{title of a part: its files}, as names below the root."""
    found = {title: [] for title in KERNEL}
    for part in ("src", "core/src"):
        for path in sorted((root / part).rglob("*.rs")):
            name = path.relative_to(root).as_posix()
            if part_of(name):
                found[part_of(name)].append(name)
    return found


def main():
    root = Path(__file__).resolve().parent.parent
    everything = written = 0
    for title, names in files(root).items():
        lines = sum(len(re.split(r"\n#\[cfg\(test\)\]\nmod ", (root / name).read_text())[0].splitlines()) for name in names)
        print(f"{lines:6} {title}")
        everything += lines
        written += sum(len((root / name).read_text().splitlines()) for name in names if "/generated_" in name)
    print(f"{everything:6} all")
    print(f"{written:6} of them written by scripts/functions/audit.py")


if __name__ == "__main__":
    main()
