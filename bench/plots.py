"""The plots beside a dated result file."""

import re
import textwrap

import matplotlib
import matplotlib.pyplot as plt

# Opaque and light, so that they can be read on any page; the same data makes the same file.
matplotlib.use("svg")
plt.rcParams.update({
    "svg.hashsalt": "pg_arrow_cache", "svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"], "font.size": 10,
    "figure.facecolor": "white", "savefig.facecolor": "white", "axes.spines.top": False, "axes.spines.right": False,
    "axes.axisbelow": True, "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#dddddd", "legend.frameon": False,
})

# Apart for colour-blind eyes, too; the same system has the same colour in all plots.
PLAIN, VIEW, POOL, HIT, REDIS, STORING = "#7f7f7f", "#e69f00", "#56b4e9", "#d55e00", "#cc79a7", "#009e73"


def labelled(axes, bars):
    axes.bar_label(bars, labels=[f"{height:.2g}" if height < 10 else f"{height:,.0f}" for height in bars.datavalues],
                   fontsize=8, padding=2)


def short(number):
    """A round number of entries."""
    return f"{number // 10**6} M" if number >= 10**6 else f"{number // 1000} k" if number >= 1000 else str(number)


def draw_rates(data):
    """Rates of small results in shares of SELECT 1."""
    sides = {"plain PostgreSQL": ("plain", PLAIN), "materialized view": ("view", VIEW), "pgpool-II": ("pool", POOL),
             "hit": ("hit", HIT)}
    groups = [(f"{name}, {mode}", key, number) for key, name in (("row", "one row"), ("aggregate", "aggregate"))
              for number, mode in enumerate(("simple", "prepared"))]
    figure, axes = plt.subplots(figsize=(8, 4))
    width = 0.2
    for place, (label, (side, colour)) in enumerate(sides.items()):
        found = [(x, data[f"{key}, {side}"][number]) for x, (_, key, number) in enumerate(groups)
                 if f"{key}, {side}" in data]
        labelled(axes, axes.bar([x + (place - 1.5) * width for x, _ in found], [share for _, share in found], width,
                                label=label, color=colour))
    axes.axhline(1, color="black", linewidth=0.8, linestyle="--")
    axes.set_xticks(range(len(groups)), [name for name, _, _ in groups])
    axes.set_ylabel("statements per second, SELECT 1 = 1")
    axes.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    return figure


def draw_wide(data, rows):
    """Times of wide results."""
    styles = {"plain PostgreSQL": (PLAIN, "-", "o"), "pgpool-II": (POOL, "-", "s"), "hit": (HIT, "-", "D"),
              "plain, binary": (PLAIN, ":", "o"), "hit, binary": (HIT, ":", "D"), "Redis": (REDIS, "-", "^"),
              "Redis, json.loads": (REDIS, ":", "^")}
    figure, axes = plt.subplots(figsize=(8, 4.5))
    for name, (colour, line, marker) in styles.items():
        label = {"plain PostgreSQL": "plain PostgreSQL, text", "hit": "hit, text", "pgpool-II": "pgpool-II, text",
                 "Redis": "Redis, JSON not parsed"}.get(name, name)
        axes.plot(rows, data[name], color=colour, linestyle=line, marker=marker, markersize=5, label=label)
    axes.set(xscale="log", yscale="log", xlabel="rows of 20 columns", ylabel="milliseconds until the client has them")
    axes.set_xticks(rows, [f"{number:,}" for number in rows])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", color="#eeeeee")
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw_scale(entries, clients):
    """Hits by entries and by clients."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name, colour in (("one key", HIT), ("any key", POOL)):
        left.plot(entries["entries"], entries[name], color=colour, marker="o", label=name)
    left.set(xscale="log", xlabel="entries in the cache", ylabel="hits per second, SELECT 1 = 1",
             ylim=(0, 1.1 * max(*entries["one key"], *entries["any key"])))
    left.set_xticks(entries["entries"], map(short, entries["entries"]))
    left.minorticks_off()
    left.legend(loc="lower left")
    for name, colour in (("1 processor", PLAIN), ("2 processors", HIT)):
        right.plot(clients["clients"], [rate / 1000 for rate in clients[name]], color=colour, marker="o", label=name)
    right.set(xscale="log", xlabel="clients", ylabel="thousand hits per second",
              ylim=(0, 1.1e-3 * max(*clients["1 processor"], *clients["2 processors"])))
    right.set_xticks(clients["clients"], map(str, clients["clients"]))
    right.minorticks_off()
    right.legend(loc="lower right")
    return figure


def draw_tpch(data):
    """TPC-H, cold, storing and hit."""
    figure, axes = plt.subplots(figsize=(9, 4))
    for place, (label, colour) in enumerate({"cold": PLAIN, "storing": STORING, "hit": HIT}.items()):
        axes.bar([x + (place - 1) * 0.28 for x in range(len(data))], [times[place] for times in data.values()], 0.28,
                 label=label, color=colour)
    axes.set_xticks(range(len(data)), [f"Q{number}" for number in data], fontsize=8)
    shortest = min(time for times in data.values() for time in times)
    axes.set(yscale="log", ylabel="milliseconds", xlim=(-0.6, len(data) - 0.4), ylim=(shortest / 3, None))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.13))
    return figure


def draw_dashboard(data):
    """Answers after a write to the newest leaf, by the way to them."""
    colours = {"plain": PLAIN, "plain, no workers": "#b3b3b3", "REFRESH + SELECT": VIEW,
               "REFRESH CONCURRENTLY + SELECT": POOL, "cache": HIT}
    figure, axes = plt.subplots(figsize=(10, 4.5))
    width = 0.17
    for place, (name, colour) in enumerate(colours.items()):
        found = [(x, times[name]) for x, times in enumerate(data.values()) if name in times]
        bars = axes.bar([x + (place - 2) * width for x, _ in found], [time for _, time in found], width, label=name,
                        color=colour)
        if name in ("plain", "cache"):
            labelled(axes, bars)
    axes.set_xticks(range(len(data)), [textwrap.fill(name, 16) for name in data], fontsize=8)
    shortest = min(time for times in data.values() for time in times.values())
    axes.set(yscale="log", ylabel="milliseconds until the client has the answer", ylim=(shortest / 3, None))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(ncols=5, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    return figure


def outline(times, values, most=120):
    """The largest value of each stretch of time: a plot of hours stays small and shows its peaks."""
    step = -(-len(times) // most)
    chosen = [max(range(start, min(start + step, len(times))), key=values.__getitem__) for start in range(0, len(times), step)]
    return [times[place] for place in chosen], [values[place] for place in chosen]


def draw_soak(series, samples):
    """Memory of each process that lasts, by kind, and how full the cache was. `series` have a label and (second, kilobytes) each."""
    kinds = (("sessions with the cache", HIT, lambda label: label.startswith(("reader", "watcher", "leaking"))),
             ("the same at once: one computes, in 4 MB more", REDIS, lambda label: label.startswith("crowd")),
             ("controls, without cache or library", POOL, lambda label: label.startswith("control")),
             ("writers", STORING, lambda label: "writer" in label and label not in ("walwriter", "background writer")),
             ("definitions, prepared transactions, sampler", VIEW, lambda label: label.startswith(("definitions", "prepared", "sampler"))),
             ("postmaster, checkpointer, …", PLAIN, lambda label: True))
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(9, 7.5), height_ratios=(3, 1), sharex=True, layout="constrained")
    for one in series:
        name, colour, _ = next(kind for kind in kinds if kind[2](one.label))
        upper.plot(*outline([at / 60 for at, _ in one.size], [kb / 1024 for _, kb in one.size]), color=colour, linewidth=0.9, label=name)
    lines = dict(zip(*reversed(upper.get_legend_handles_labels())))
    shown = [name for name, _, _ in kinds if name in lines]
    figure.legend([lines[name] for name in shown], shown, fontsize=9, ncols=2, loc="outside upper center")
    upper.set(ylabel="MB of a process, without shared memory", ylim=(0, None))
    minutes = [one["seconds"] / 60 for one in samples]
    lower.plot(*outline(minutes, [one["bytes_used"] / 2**20 for one in samples]), color=HIT, linewidth=0.9)
    lower.set(xlabel="minutes", ylabel="MB used of the cache", ylim=(0, samples[0]["bytes_total"] / 2**20), xlim=(0, None))
    lower.yaxis.label.set_color(HIT)
    entries = lower.twinx()
    entries.plot(*outline(minutes, [one["entries"] for one in samples]), color=PLAIN, linewidth=0.9)
    entries.set(ylabel="entries", ylim=(0, None))
    entries.yaxis.label.set_color(PLAIN)
    entries.grid(False)
    return figure


def save(figure, path):
    """Writes a plot that is exact to a tenth of a pixel, without what only other programs than a browser read."""
    figure.savefig(path, bbox_inches="tight", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    plt.close(figure)
    drawn = re.sub(r' (d|x|y)="[^"]*"', lambda place: re.sub(r"(\.\d)\d+", r"\1", place[0]), path.read_text())
    for needless in (r"<!--.*?-->", r' transform="rotate\(-0 [^"]*"', r' id="(figure|axes|patch|line2d|text|matplotlib|[xy]tick|legend)[^"]*"', r"(?<=\n) +"):
        drawn = re.sub(needless, "", drawn)
    path.write_text(drawn)


def draw(data, directory, name, wide_rows):
    """Draws what `data` has, into files whose names begin with `name`: {title: path}."""
    drawn = {}
    if "rates" in data:
        drawn["Small results, by system"] = "rates", draw_rates(data["rates"])
    if "wide" in data:
        drawn["Wide results, by system and rows"] = "wide", draw_wide(data["wide"], wide_rows)
    if "entries" in data:
        drawn["Hits by entries and by clients"] = "scale", draw_scale(data["entries"], data["clients"])
    if "tpch" in data:
        drawn["TPC-H without the cache, storing, and hit"] = "tpch", draw_tpch(data["tpch"])
    if "dashboard" in data:
        drawn["A dashboard after a write, by the way to its answers"] = "dashboard", draw_dashboard(data["dashboard"])
    paths = {}
    for title, (kind, figure) in drawn.items():
        paths[title] = directory / f"{name}-{kind}.svg"
        save(figure, paths[title])
    return paths
