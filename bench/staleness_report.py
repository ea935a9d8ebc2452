"""What the trials of bench/staleness.py showed, as tables."""

from dataclasses import dataclass

READERS = {"here": "this connection", "there": "another"}
FRESH, STALE = "fresh", "STALE"


@dataclass(frozen=True)
class Outcome:
    """What one trial showed."""

    served: bool      # from the cache, right before the change
    remark: str       # what the cache said about that read
    verdict: str      # FRESH, STALE, or the error that the server would not have raised
    after: str = ""   # what the cache said about the read after the change


@dataclass(frozen=True)
class Result:
    """A case on one system: an outcome for each reader."""

    case: object
    outcomes: dict

    @property
    def served(self):
        return all(outcome.served for outcome in self.outcomes.values())

    @property
    def before(self):
        reasons = {outcome.remark for outcome in self.outcomes.values() if not outcome.served}
        return "hit" if self.served else ", ".join(sorted(reasons))

    @property
    def verdicts(self):
        return [self.outcomes[reader].verdict for reader in READERS]

    @property
    def wrong(self):
        return any(verdict != FRESH for verdict in self.verdicts)

    @property
    def name_if_wrong(self):
        return self.case.name if STALE in self.verdicts else f"{self.case.name} (error)"


def table(title, note, header, rows):
    lines = [f"## {title}", "", note, "", "| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def summary(tried, systems):
    """The short table, which README shows."""
    header = ["change", "ways"]
    for system in systems:
        header += [f"{system.name}: hit before", "stale after"]
    groups = {**tried, "**all**": [pair for pairs in tried.values() for pair in pairs]}
    rows = []
    for group, pairs in groups.items():
        row = [group, str(len(pairs))]
        for results in zip(*pairs):
            row += [str(sum(result.served for result in results)), str(sum(result.wrong for result in results))]
        rows.append(row)
    return table(
        "Stale answers",
        "Each way to change data, its meaning or who may see it is tried twice: the query is asked again by the "
        "connection that made the change, and by another; privileges are changed by an administrator's connection. "
        "Stale is an answer that is not, byte for byte, what the server says without a cache, and an error that the "
        "server does not raise.",
        header, rows)


def lists(tried, systems):
    for number, system in enumerate(systems):
        wrong = [pair[number].name_if_wrong for pairs in tried.values() for pair in pairs if pair[number].wrong]
        yield f"{system.name} was stale after: {'; '.join(wrong) or 'nothing'}.\n"


def sections(tried, systems):
    header = ["change"]
    for system in systems:
        header += [f"{system.name}: before", *READERS.values()]
    for group, pairs in tried.items():
        rows = []
        for pair in pairs:
            case = pair[0].case
            remarks = [f"declined by this extension: it {case.uncacheable}"] if case.uncacheable else []
            remarks += [case.note] if case.note else []
            rows.append([case.name, *(cell for result in pair for cell in (result.before, *result.verdicts)),
                         "; ".join(remarks)])
        note = "Whether the query was served from the cache right before the change, and the answers after it."
        yield table(group, note, [*header, "remark"], rows)


def shortcomings(tried):
    """What breaks this extension's promise."""
    for pairs in tried.values():
        for ours, _ in pairs:
            if ours.wrong:
                yield f"{ours.case.name}: {' / '.join(ours.verdicts)}"
            if not ours.served and not ours.case.uncacheable:
                yield f"{ours.case.name}: not served before the change ({ours.before})"
