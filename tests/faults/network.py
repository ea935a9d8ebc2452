"""Faults of networks: a client whose machine is gone. It has a network of its own, which takes root and `ip` (package iproute2). Where that is not
possible, the faults say so and do nothing."""

import contextlib
import ctypes
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import situations
from faults import fault
from world import LARGE, Raw, Wrong

CLONE_NEWNET = 0x40000000
# Addresses for tests of networks (RFC 2544).
SERVER, CLIENT, PREFIX = "198.18.77.1", "198.18.77.2", 30
NEAR, FAR = "pgac-near", "pgac-far"


class FarMachine:
    """A thread whose sockets are on another network, which one cable connects to that of the server."""

    def __init__(self):
        self.thread = ThreadPoolExecutor(max_workers=1)

    def do(self, action, *args, **options):
        return self.thread.submit(action, *args, **options).result()

    def ip(self, *words):
        self.do(subprocess.run, ["ip", *words], check=True, capture_output=True)

    def connect(self):
        """False if that is not possible here."""
        if os.geteuid() != 0 or self.do(ctypes.CDLL(None).unshare, CLONE_NEWNET) != 0:
            return False
        try:
            self.ip("link", "add", FAR, "type", "veth", "peer", "name", NEAR, "netns", str(os.getpid()))
        except (OSError, subprocess.CalledProcessError):
            return False
        self.ip("address", "add", f"{CLIENT}/{PREFIX}", "dev", FAR)
        self.ip("link", "set", FAR, "up")
        for words in (["address", "add", f"{SERVER}/{PREFIX}", "dev", NEAR], ["link", "set", NEAR, "up"]):
            subprocess.run(["ip", *words], check=True)
        return True

    def cut(self):
        """From now on nothing arrives on either side, and nobody is told."""
        self.ip("link", "set", FAR, "down")

    def close(self):
        # The cable goes with its end here, or with the network of the thread.
        subprocess.run(["ip", "link", "delete", NEAR], capture_output=True)
        self.thread.shutdown()


@contextlib.contextmanager
def far_machine():
    """A machine that can be cut off, or `None`."""
    machine = FarMachine()
    try:
        is_there = machine.connect()
        if not is_there:
            print("# no network can be made here: the fault was not tried", flush=True)
        yield machine if is_there else None
    finally:
        machine.close()


@contextlib.contextmanager
def listening(world):
    """The server listens to the far machine, and gives up a peer that has not answered for some seconds."""
    hba = world.cluster.data / "pg_hba.conf"
    before = hba.read_text()
    settings = {"listen_addresses": SERVER, "tcp_user_timeout": "2s", "tcp_keepalives_idle": "1s", "tcp_keepalives_interval": "1s", "tcp_keepalives_count": "2"}
    hba.write_text(f"{before}\nhost all all {CLIENT}/32 trust\n")
    with world.connect() as session:
        for name, value in settings.items():
            session.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    world.close_all()
    world.cluster.restart()
    try:
        yield
    finally:
        hba.write_text(before)
        with world.connect() as session:
            session.execute("ALTER SYSTEM RESET ALL")
        world.close_all()
        world.cluster.restart()


@fault("half-open sockets: machines of clients gone, with a cursor on a hit, in the middle of hits and of a storing run")
def half_open(world):
    with far_machine() as machine:
        if machine is None:
            return
        with listening(world):
            situations.stored(world)
            sessions = [machine.do(Raw, world, host=SERVER) for _ in range(4)]
            holding, serving, exporting, filling = sessions
            holding.session.execute(f"BEGIN; DECLARE held CURSOR FOR {LARGE}; FETCH 10 FROM held")
            serving.send(LARGE).wait_for("ClientWrite")
            exporting.send(f"COPY ({LARGE}) TO STDOUT (FORMAT arrow)").wait_for("ClientWrite")
            filling.send(f"{LARGE}, pad DESC").wait_for("ClientWrite")
            machine.cut()
            for session in sessions:
                world.wait_until("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = %s)", session.pid)
            with world.connect() as session:
                if session.execute("SELECT claims_held FROM arrow_cache.stats").fetchone()[0] != 0:
                    raise Wrong("a claim is left")
