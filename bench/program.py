"""What the programs of the bench share: progress on stderr, and the check that the right library is measured."""

import filecmp
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import cluster as private  # noqa: E402  (it lives beside other programs)

STARTED = time.monotonic()


def progress(text):
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


def check_build():
    """A debug build, or another checkout's, would be measured without a word."""
    installed = Path(private.pg_config("--pkglibdir")) / "pg_arrow_cache.so"
    built = ROOT / "target" / "release" / "libpg_arrow_cache.so"
    if not built.exists() or not installed.exists() or not filecmp.cmp(built, installed, shallow=False):
        sys.exit(f"bench: {installed} is not this checkout's release build; run `make install`")
