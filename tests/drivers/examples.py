"""The examples of clients/ that read Arrow in a few lines, in other languages than Python, and what they are asked for."""

from dashboard import Panel
from modes import PREPARED, PROGRAMS, Driver, Mode

# An example takes no parameters. Types that each of them prints alike at each run.
PANELS = [
    Panel("stores by region", "SELECT region, count(*) AS stores, max(floor_area)::float8 AS largest FROM stores GROUP BY region ORDER BY region"),
    Panel("products", "SELECT product_id, sku, brand, NULLIF(category, 'Books') AS category FROM products ORDER BY product_id"),
    Panel("the last sales", "SELECT sale_id, sold_at, unit_price, channel FROM sales WHERE date_id >= [[CURRENT_DATE - 7]] ORDER BY sale_id"),
]
# Also modules that Arrow for Java reaches into.
JAVA = ["java", "-XX:+UseSerialGC", "--add-opens=java.base/java.nio=ALL-UNNAMED"]


def example(name, command, needs):
    python = PREPARED / "venv" / "bin" / "python"
    return Driver(name, [python, "-B", PROGRAMS / "read_example.py", *command], needs, None, [Mode("example")], PANELS)


EXAMPLES = [
    example("Go", [PREPARED / "read_arrow"], [PREPARED / "read_arrow"]),
    example("Java", [*JAVA, "-cp", ":".join(map(str, (PREPARED / "pgjdbc.jar", PREPARED / "java", PREPARED / "java-tools", PREPARED / "jars" / "*"))), "ReadArrow", "{url}"],
            [PREPARED / "jars" / "arrow-vector*", PREPARED / "java-tools" / "ReadArrow.class"]),
]
