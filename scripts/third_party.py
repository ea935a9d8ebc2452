#!/usr/bin/env python3
"""Prints names, versions and licences of the crates that the library is made of, and the texts of their licences.

    scripts/third_party.py pg17      the argument is the feature that the library is built with

The same text is printed once, with the crates that it comes with. Crates that are only there to compile others are left out.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXTS = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


def cargo(*words):
    return subprocess.run(["cargo", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(feature):
    """(name, version) of all crates in the library, without our own."""
    tree = cargo("tree", "--locked", "--edges=normal,no-proc-macro", "--no-default-features", f"--features={feature}", "--prefix=none", "--format={p}")
    words = [line.split() for line in tree.splitlines() if line and "(/" not in line]
    return {(name, version.removeprefix("v")) for name, version, *_ in words}


def texts_of(crate):
    """The licence texts in a crate's folder, and in the folders of the C sources that it carries."""
    folder = Path(crate["manifest_path"]).parent
    for path in sorted([*folder.iterdir(), *folder.glob("*/*")]):
        if path.is_file() and TEXTS.match(path.name) and path.suffix.lower() in ("", ".txt", ".md"):
            yield path.read_text(errors="replace").strip()


def main():
    feature = sys.argv[1]
    wanted = linked(feature)
    metadata = json.loads(cargo("metadata", "--locked", "--format-version=1", "--no-default-features", f"--features={feature}"))
    crates = sorted((crate for crate in metadata["packages"] if (crate["name"], crate["version"]) in wanted), key=lambda crate: (crate["name"], crate["version"]))
    print("Crates that the library is made of, with the licences that their authors name\n")
    owners = {}
    for crate in crates:
        print(f"    {crate['name']} {crate['version']}: {crate['license'] or 'see its text'}")
        for text in texts_of(crate):
            owners.setdefault(text, []).append(crate["name"])
    for text, names in owners.items():
        print(f"\n{'=' * 100}\n{', '.join(sorted(set(names)))}\n\n{text}")


if __name__ == "__main__":
    main()
