"""pgbench by turns: its sessions last over all rounds, and it is stopped between its turns, so that no turn pays for new sessions."""

import os
import re
import signal
import subprocess
import tempfile
import time

LONGEST_SECONDS = 3600
FIRST_SECONDS = 60
REPORTED_SECONDS = 1
REPORT = re.compile(r"^progress: ([\d.]+) s, ([\d.]+) tps", re.MULTILINE)


def rates_of(reports, turns):
    """Transactions per second in each turn, which is (begin, end). A report, (when, transactions per second since the one before), may
    tell of no turn, of one or of several: each has its share of them by the time for which pgbench ran in it."""
    counts = [0.0] * len(turns)
    for (last, _), (now, tps) in zip(reports, reports[1:]):
        ran = [max(0.0, min(now, end) - max(last, begin)) for begin, end in turns]
        for number, seconds in enumerate(ran):
            if seconds > 0:
                counts[number] += tps * (now - last) * seconds / sum(ran)
    return [count / (end - begin) for count, (begin, end) in zip(counts, turns)]


class Turns:
    """One pgbench, pinned to some processors. It has run for a second and is stopped when this returns."""

    def __init__(self, server, processors, *arguments):
        self.told = tempfile.TemporaryFile("w+")
        self.turns = []   # (begin, end)
        pinned = ["taskset", "-c", ",".join(map(str, processors))]
        command = [*pinned, *server.client("pgbench", "-n", "-T", LONGEST_SECONDS, "-P", REPORTED_SECONDS, "--progress-timestamp", *arguments, "postgres")]
        self.process = subprocess.Popen(command, env=server.environment(), stdout=subprocess.DEVNULL, stderr=self.told)
        try:
            self._wait_for_report()
            self.process.send_signal(signal.SIGSTOP)
        except BaseException:
            self.end()
            raise

    def run(self, seconds):
        begin = time.time()
        self.process.send_signal(signal.SIGCONT)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGSTOP)
        self.turns.append((begin, time.time()))

    def rates(self):
        """Transactions per second in each turn. There are no more turns afterwards."""
        # By then a report is due, and comes before anything else is done.
        time.sleep(max(0.0, self.turns[-1][1] + 1.1 * REPORTED_SECONDS - time.time()))
        self.process.send_signal(signal.SIGCONT)
        self._wait_for_report()   # it tells what has been done since the one before
        reports = self._reports()
        self.end()
        return rates_of(reports, self.turns)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.told.close()

    def _reports(self):
        """(when, transactions per second since the one before) in each line of progress. Only whole lines count."""
        text = os.pread(self.told.fileno(), os.fstat(self.told.fileno()).st_size, 0).decode()
        return [(float(when), float(tps)) for when, tps in REPORT.findall(text[:text.rfind("\n") + 1])]

    def _wait_for_report(self):
        before, until = len(self._reports()), time.monotonic() + FIRST_SECONDS
        while len(self._reports()) == before:
            if self.process.poll() is not None or time.monotonic() > until:
                self.told.seek(0)
                raise RuntimeError(f"pgbench has ended, or reports nothing:\n{self.told.read()[-2000:]}")
            time.sleep(0.01)
