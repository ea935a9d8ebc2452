"""Whether the memory of a process has stayed what it was."""

from dataclasses import dataclass, field
from statistics import median

# A process that was there for this share of the run counts as one that lasts.
LASTING = 0.9
# Processes that do the same without the cache, or on a server without the library.
CONTROL = "control "
# The caches of PostgreSQL (catalogs, plans, functions) and the arenas of malloc fill in the first quarter, so the last quarter is compared with the
# second one. Medians leave out single statements that need much. Both may differ by one step in which such a cache grows: memory contexts take
# blocks that double in size, so that one of a megabyte and some more takes a further megabyte at once; a larger process takes larger steps. Between
# the middles of both quarters lies half of the run, so a leak of a megabyte in half of the run is seen: of half a byte for each of two million
# statements.
#
# Some of what PostgreSQL keeps goes on to grow, such as the cache of catalogs in a session that makes and drops objects all the time. A process may
# grow by as much more as its control has grown.
ALLOWED_KB, ALLOWED_SHARE = 1024, 0.05


@dataclass
class Series:
    """A process and what it had, in kilobytes, at which second."""

    label: str
    size: list = field(default_factory=list)
    # The part of its memory contexts, which it was asked for more seldom.
    contexts: list = field(default_factory=list)

    def growth(self, seconds, what="size"):
        """(median of the second quarter, median of the last quarter), or `None` if one of them has no sample."""
        values = getattr(self, what)
        second = [kb for at, kb in values if 0.25 * seconds <= at < 0.5 * seconds]
        last = [kb for at, kb in values if at >= 0.75 * seconds]
        return (median(second), median(last)) if second and last else None

    def outside(self):
        """The same process without its memory contexts."""
        sizes = dict(self.size)
        return Series(self.label, [(at, sizes[at] - kb) for at, kb in self.contexts if at in sizes])


def is_flat(before, after, control=0):
    """`control`: by how much that has grown."""
    return after - before <= max(ALLOWED_KB, ALLOWED_SHARE * before) + max(0, control)


def lasting(samples):
    """A series for each process that was there nearly all the time. Sessions of the same name are numbered."""
    end = samples[-1]["seconds"]
    found = {}
    for one, after in zip(samples, [*samples[1:], {"contexts": {}}]):
        for pid, name, kb in one["processes"]:
            series = found.setdefault((pid, name), Series(name))
            series.size.append((one["seconds"], kb))
            # A session is asked when its size has been read, and its answer is read at the next sample.
            if str(pid) in after["contexts"]:
                series.contexts.append((one["seconds"], after["contexts"][str(pid)]))
    kept = {key: series for key, series in found.items() if series.size[-1][0] - series.size[0][0] >= LASTING * end}
    alike = {}
    for (_, name), series in kept.items():
        alike.setdefault(name, []).append(series)
    for name, together in alike.items():
        for number, series in enumerate(together, 1):
            series.label = f"{name}, session {number}" if len(together) > 1 else name
    return list(kept.values())


def table(series, seconds):
    """Rows of Markdown, and the labels of those that have grown."""
    rows, grown = ["| process | second quarter | last quarter | control | memory contexts | everything else |", "|---|---|---|---|---|---|"], []
    controls = {one.label.removeprefix(CONTROL): one.growth(seconds) for one in series if one.label.startswith(CONTROL)}
    for one in series:
        if one.label.startswith(CONTROL):
            continue
        size = one.growth(seconds)
        if size is None:
            grown.append(f"{one.label}: too few samples")
            continue
        cells = [f"{kb:,.0f} kB" for kb in size]
        control = controls.get(one.label)
        for growth in (control, one.growth(seconds, "contexts"), one.outside().growth(seconds)):
            cells.append(f"{growth[1] - growth[0]:+,.0f} kB" if growth else "")
        rows.append(f"| {one.label} | {' | '.join(cells)} |")
        if not is_flat(*size, control[1] - control[0] if control else 0):
            grown.append(f"{one.label} {size[1] - size[0]:+,.0f} kB")
    return rows, grown
