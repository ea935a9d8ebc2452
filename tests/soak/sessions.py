"""The oracle's processes, as the soak uses them: with sessions that last as long as the run, with controls that do the same without the cache,
and with sessions that come and go. The server knows each session by the name of its process (`application_name`)."""

import os

import crowd
import readers
import watchers
import writers

CONTROL = "control "
# Writers that have a control on a server without the library. The last one ends what the other one has prepared.
CONTROLLED = ("definitions", "data writer 1", "prepared")
# Shares of batches with young snapshots, as the oracle has them.
YOUNG = (0.4, 0.2)
# Passers-by leave after some batches.
COME_AND_GO = 0.06


def named(function, **options):
    """The same, with a name and settings for all connections of the process. It runs in a process of its own, which alone sees the variables."""
    def begin(run, name, number, *arguments):
        os.environ["PGAPPNAME"] = name
        os.environ["PGOPTIONS"] = " ".join(f"-c {setting}={value}" for setting, value in options.items())
        tally = function(run, name, number, *arguments)
        for what, counter in (("statements", tally.statuses), ("changes", tally.done)):
            if counter:
                tally.counts[f"{what} of {name}"] = sum(counter.values())
        return tally
    return begin


def without_cache(function):
    """The same statements with the cache off. What a control compares proves nothing, and is not counted with the rest."""
    def begin(run, name, number, *arguments):
        readers.ON = readers.OFF
        tally = function(run, name, number, *arguments)
        tally.counts[f"statements of {name}"] = sum(tally.statuses.values())
        for counter in (tally.compared, tally.hits, tally.statuses, tally.reasons):
            counter.clear()
        return tally
    return named(begin, **{"pg_arrow_cache.enabled": "off"})


def without_library(function, dsn):
    """The same changes on another server."""
    def begin(run, name, number, *arguments):
        run.dsn = dsn
        tally = named(function)(run, name, number, *arguments)
        tally.done.clear()
        tally.tolerated.clear()
        return tally
    return begin


def changers(pause, definitions_pause):
    return [(name, named(function), arguments) for name, function, arguments in writers.processes(pause, definitions_pause)]


def controls(pause, definitions_pause, dsn):
    return [(CONTROL + name, without_library(function, dsn), arguments)
            for name, function, arguments in writers.processes(pause, definitions_pause) if name in CONTROLLED]


def askers():
    lasting = [("reader", readers.compare, (young, 0)) for young in YOUNG] + [("watcher", watchers.watch, ())]
    found = []
    for number, (name, function, arguments) in enumerate(lasting, 1):
        found += [(f"{name} {number}", named(function), arguments), (f"{CONTROL}{name} {number}", without_cache(function), arguments)]
    found += [(name, named(function), arguments) for name, function, arguments in crowd.processes()]
    return found + [("passer-by", named(readers.compare), (YOUNG[1], COME_AND_GO))]


def planted(what, leak):
    """A process that must make the soak fail. `leak` is a library that loses memory."""
    if what == "leak":
        return [("leaking reader", named(readers.compare, session_preload_libraries=leak), (YOUNG[1], 0))]
    if what == "difference":
        return [("outdated watcher", named(watchers.watch, **{"pg_arrow_cache.max_stale": "5s"}), ())]
    return []
