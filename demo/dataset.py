"""The data set and the dashboard of the demo."""

import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PGBENCH_SCALE = 20
SALES = 2_200_000

# A server as one would set it up for reports: what a query costs uncached should not be the fault of the settings.
SERVER_CONF = {
    "shared_buffers": "512MB",
    "work_mem": "64MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "timezone": "'UTC'",
}


def load(cluster, progress=print):
    """Creates both data sets and the extension in the database `postgres`."""
    progress(f"loading pgbench at scale {PGBENCH_SCALE}")
    command = cluster.client("pgbench", "-i", "-q", "-s", PGBENCH_SCALE, "postgres")
    subprocess.run(command, check=True, env=cluster.environment(), capture_output=True)
    load_star_schema(cluster, SALES, progress)
    cluster.psql("CREATE EXTENSION pg_arrow_cache")


def load_small(cluster, sales, progress=print):
    """Creates a smaller data set with a partition of the sales for each quarter, and the extension."""
    load_star_schema(cluster, sales, progress)
    cluster.psql((HERE / "quarterly_sales.sql").read_text())
    command = cluster.client("pgbench", "-i", "-q", "-s", 2, "postgres")
    subprocess.run(command, check=True, env=cluster.environment(), capture_output=True)
    cluster.psql("CREATE EXTENSION pg_arrow_cache")


def load_star_schema(cluster, sales, progress=print):
    """Creates the four dimensions and the fact table with `sales` rows."""
    progress("generating the star schema")
    cluster.psql(f"\\set sales {sales}\n" + (HERE / "star_schema.sql").read_text())


def queries():
    """The dashboard: name → SQL, in the order of the files."""
    return {path.stem: path.read_text().strip() for path in sorted((HERE / "queries").glob("*.sql"))}
