"""The wheel: one command of pip installs it into a fresh environment, without a network."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import version

from support.python_package import SOURCE

REPORT = """
import importlib.metadata, pathlib, sys, pg_arrow_cache
print(sys.prefix in pg_arrow_cache.__file__, (pathlib.Path(pg_arrow_cache.__file__).parent / "py.typed").exists())
print(importlib.metadata.version("pg-arrow-cache") == pg_arrow_cache.__version__)
DRIVERS = {"psycopg", "psycopg2", "asyncpg", "adbc_driver_manager", "polars", "duckdb", "pandas"}
print(sorted({name.partition(".")[0] for name in sys.modules} & DRIVERS))
"""

# With compiled files where they always are: those of pip and pyarrow are there.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(*command):
    return subprocess.run(command, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True).stdout


def test_a_fresh_environment(wheel, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "fresh")
    # The fresh environment has nothing but pyarrow, which pip would otherwise get from its index.
    packages, = (tmp_path / "fresh" / "lib").glob("python*/site-packages")
    for part in ("pyarrow", f"pyarrow-{version('pyarrow')}.dist-info", "pyarrow.libs"):
        (packages / part).symlink_to(f"{sysconfig.get_path('purelib')}/{part}")
    python = tmp_path / "fresh" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-cache-dir",
        "--disable-pip-version-check", wheel)
    assert run(python, "-c", REPORT).splitlines() == ["True True", "True", "[]"]


def test_what_is_in_it(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = {path.relative_to(SOURCE).as_posix() for path in (SOURCE / "pg_arrow_cache").iterdir() if path.is_file()}
    assert {name for name in names if ".dist-info/" not in name} == sources
