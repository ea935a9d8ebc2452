#!/usr/bin/env python3
"""Keeps what the fuzzer has found to take new paths: one file for each target, which `make test-core` reads.

    core/fuzz/corpus.py unpack NAME DIRECTORY     the inputs as files, for the fuzzer to go on from
    core/fuzz/corpus.py pack NAME DIRECTORY       the inputs of a directory in the place of those that were kept

core/fuzz/corpora/NAME.corpus holds the inputs one after the other, sorted, each behind its length in two bytes, the lower one first.
"""

import hashlib
import struct
import sys
from pathlib import Path

CORPORA = Path(__file__).resolve().parent / "corpora"
LONGEST = 0xFFFF


def pack(name, directory):
    inputs = sorted({path.read_bytes() for path in Path(directory).iterdir() if path.is_file()})
    too_long = [data for data in inputs if len(data) > LONGEST]
    if not inputs or too_long:
        sys.exit(f"corpus: {directory} has {len(inputs)} inputs, {len(too_long)} of them longer than {LONGEST} bytes")
    CORPORA.mkdir(exist_ok=True)
    (CORPORA / f"{name}.corpus").write_bytes(b"".join(struct.pack("<H", len(data)) + data for data in inputs))
    print(f"{name}: {len(inputs)} inputs kept")


def unpack(name, directory):
    Path(directory).mkdir(parents=True, exist_ok=True)
    kept, start, count = (CORPORA / f"{name}.corpus").read_bytes(), 0, 0
    while start < len(kept):
        (length,) = struct.unpack_from("<H", kept, start)
        data = kept[start + 2:start + 2 + length]
        if len(data) != length:
            sys.exit(f"corpus: {name}.corpus is cut short")
        (Path(directory) / hashlib.sha1(data).hexdigest()).write_bytes(data)
        start, count = start + 2 + length, count + 1
    print(f"{name}: {count} inputs")


def main():
    actions = {"pack": pack, "unpack": unpack}
    if len(sys.argv) != 4 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    actions[sys.argv[1]](*sys.argv[2:])


if __name__ == "__main__":
    main()
