#!/usr/bin/env python3
"""Draws docs/dashboard.svg: each panel of the dashboard, in its place, with what Prometheus answers about a server under a changing load. It is no
screenshot of Grafana, which has colours and controls of its own; expressions, titles, legends and places are those of monitoring/grafana.json.

    tests/monitoring/picture.py [SECONDS]       120 by default; needs what `scripts/setup.sh monitoring` and `scripts/setup.sh bench` install
"""

import random
import re
import sys
import threading
import time

import matplotlib.pyplot as plt
import psycopg
from run import ROOT, SETTINGS, filled_in, monitored, panels

sys.path.append(str(ROOT / "bench"))
import plots  # noqa: E402

COLUMNS = 24   # of Grafana's grid
INCHES = 0.72, 0.36   # of one of its cells
# So little memory that results are evicted.
LOAD = {**SETTINGS, "pg_arrow_cache.memory": "64MB", "pg_arrow_cache.max_wait": "5s", "shared_buffers": "128MB"}
TABLES = """
    CREATE TABLE sales AS SELECT g AS id, g % 300 AS shop, g % 97 AS amount, repeat('x', 40) AS note FROM generate_series(1, 200000) g;
    CREATE TABLE visits AS SELECT g AS id, g % 50 AS page FROM generate_series(1, 50000) g; ANALYZE"""
# Asked again and again; as often new; never answered by the cache.
DASHBOARD = ["SELECT shop, sum(amount) FROM sales GROUP BY shop ORDER BY shop", "SELECT count(*), avg(amount) FROM sales",
             "SELECT page, count(*) FROM visits GROUP BY page ORDER BY page"]
NEW = "SELECT id, shop, amount, note FROM sales WHERE amount > {} ORDER BY id"
BYPASSED = ["SELECT count(*) FROM visits WHERE random() < 0.5", "SELECT id FROM visits ORDER BY id LIMIT 1 FOR SHARE"]


def load(dsn, number, until, began):
    """One client: reads a dashboard, more and more; in the second half also what is new each time, while rows are written."""
    chosen = random.Random(number)
    with psycopg.connect(dsn, autocommit=True) as session:
        while time.monotonic() < until:
            late = time.monotonic() - began > (until - began) / 2
            kind = chosen.random()
            if late and number == 0 and kind < 0.3:
                session.execute("UPDATE sales SET amount = amount + 1 WHERE id = %s", [chosen.randrange(200000)])
            elif late and kind < 0.25:
                session.execute(NEW.format(chosen.randrange(97)))
            elif kind < 0.35:
                session.execute(chosen.choice(BYPASSED))
            else:
                session.execute(chosen.choice(DASHBOARD))
            time.sleep(chosen.random() * 0.1)


def legend(pattern, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda name: labels.get(name[1], ""), pattern)


def draw(axes, panel, prometheus, start, end):
    axes.set_title(panel["title"], fontsize=9, loc="left")
    axes.tick_params(labelsize=7)
    scale, unit = {"bytes": (2**20, "MB"), "percentunit": (0.01, "%"), "ops": (1, "per second"), "s": (1, "seconds per second")}.get(
        panel["fieldConfig"]["defaults"].get("unit"), (1, ""))
    axes.set_ylabel(unit, fontsize=7)
    for target in panel["targets"]:
        for labels, points in prometheus.ask_range(filled_in(target["expr"]), start, end):
            if panel["type"] == "stat":
                axes.axis("off")
                shown = legend(target["legendFormat"], {**labels, "instance": ""}).strip()
                axes.text(0.5, 0.5, f"{points[-1][1]:g}\n{shown}", ha="center", va="center", fontsize=11)
                continue
            drawn = plots.outline([at - start for at, _ in points], [value / scale for _, value in points], most=30)
            axes.plot(*drawn, linewidth=1, label=legend(target["legendFormat"], labels))
    if axes.get_legend_handles_labels()[0]:
        axes.locator_params(nbins=3)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=6, loc="upper left", framealpha=0.6)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    with monitored(ROOT / "target" / "test-monitoring", LOAD) as (server, session, prometheus):
        session.execute(TABLES)
        start, began = time.time(), time.monotonic()
        clients = [threading.Thread(target=load, args=(server.dsn(), number, began + seconds, began)) for number in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        end = time.time()
        places = [panel["gridPos"] for panel in panels()]
        height = max(place["y"] + place["h"] for place in places)
        figure = plt.figure(figsize=(COLUMNS * INCHES[0], height * INCHES[1]))
        for panel, place in zip(panels(), places):
            corner = (place["x"] + 1.1) / COLUMNS, 1 - (place["y"] + place["h"] - 1.3) / height
            draw(figure.add_axes((*corner, (place["w"] - 1.5) / COLUMNS, (place["h"] - 2.6) / height)), panel, prometheus, start, end)
        path = ROOT / "docs" / "dashboard.svg"
        plots.save(figure, path)
        print(f"written to {path.relative_to(ROOT)}: {seconds} seconds")


if __name__ == "__main__":
    main()
