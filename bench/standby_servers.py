"""Primaries whose WAL is kept, and standbys made of a base backup."""

import os
import shutil
import time
from pathlib import Path

from program import private
from session import Session

WAITING_SECONDS = 600
POLL_SECONDS = 0.05


class Primary(private.Cluster):
    """A server whose WAL is kept in a directory of its own, file by file."""

    def __init__(self, directory, *, conf=None, **options):
        super().__init__(directory, conf={"archive_mode": "on", **(conf or {})}, **options)

    def _configure(self):
        self.archive = self.base / "archive"
        make_directory(self.archive)
        self.conf["archive_command"] = f"'cp %p {self.archive}/%f.part && mv {self.archive}/%f.part {self.archive}/%f'"
        super()._configure()

    def back_up(self):
        """A base backup, with the WAL that makes it consistent."""
        backup = self.base / "backup"
        command = [self.bindir / "pg_basebackup", "-D", backup, "-X", "fetch", "-c", "fast", "--no-sync", "--no-manifest"]
        self._run([*self.pin, *command, "-h", self.socket_dir, "-p", self.port, "-U", private.SUPERUSER])
        return backup

    def finish_file(self):
        """Begins a new file of WAL when the present one is in the archive. Returns its last position and its name."""
        end, name = self.psql("SELECT at, pg_walfile_name(at - 1) FROM pg_switch_wal() AS at").split("|")
        wait_until(lambda: (self.archive / name).exists(), f"the archive has {name}")
        return end, name

    def archived(self):
        """The names of all files of WAL in the archive, in their order."""
        return sorted(path.name for path in self.archive.iterdir() if len(path.name) == 24)


class Standby(private.Cluster):
    """A server in recovery, made of a base backup. It streams from a primary, or replays what is put into its pg_wal."""

    def __init__(self, directory, backup, *, primary=None, conf=None, **options):
        settings = {
            "hot_standby": "on", "archive_mode": "off", "wal_receiver_status_interval": "1s",
            # What is put into pg_wal is found soon, and no file there is taken away or given another name.
            "wal_retrieve_retry_interval": "20ms", "recovery_target_timeline": "'current'", "wal_recycle": "off",
        }
        if primary is not None:
            settings["primary_conninfo"] = f"'host={primary.socket_dir} port={primary.port} user={private.SUPERUSER}'"
        super().__init__(directory, conf={**settings, **(conf or {})}, **options)
        self.backup, self.primary, self.asking = Path(backup), primary, None

    def _fill(self):
        self._run(["cp", "-a", self.backup, self.data])
        self._run(["touch", self.data / "standby.signal"])

    def stop(self):
        self.hang_up()
        super().stop()

    def ask(self, sql):
        """One value, by a session that is kept: asking where replay is costs little."""
        if self.asking is None:
            self.asking = Session(self.dsn())
        return self.asking.scalar(sql)

    def hang_up(self):
        """Ends that session."""
        if self.asking is not None:
            self.asking.close()
            self.asking = None

    @property
    def startup_pid(self):
        """Of the process that replays."""
        return int(self.ask("SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'"))

    def feed(self, files):
        """Gives it WAL. The first file comes last: replay does not pause between them."""
        for file in reversed(files):
            os.link(file, self.data / "pg_wal" / file.name)

    def wait_for(self, position):
        """Until it has replayed the WAL up to a position."""
        asked = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
        wait_until(lambda: self.ask(asked) == "t", f"the standby has replayed up to {position}")

    def catch_up(self):
        """Until it has replayed what the primary has written."""
        self.wait_for(self.primary.psql("SELECT pg_current_wal_insert_lsn()"))

    def check_publishing(self):
        """A measurement of a library that has switched itself off is worse than none."""
        state = self.ask("SELECT standby_state FROM arrow_cache.stats")
        if state != "replaying":
            raise RuntimeError(f"the library on the standby is in the state {state}")


def make_directory(path):
    """One that the server's account can write to."""
    path.mkdir()
    if os.geteuid() == 0:
        shutil.chown(path, private.server_user().pw_uid, private.server_user().pw_gid)


def wait_until(condition, what):
    until = time.monotonic() + WAITING_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise RuntimeError(f"waited in vain until {what}")
        time.sleep(POLL_SECONDS)

