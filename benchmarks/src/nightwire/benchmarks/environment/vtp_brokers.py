"""The two brokers: our gateway on Kafka, and Comet with its event database in memory."""

import socket
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from nightwire.benchmarks import Closeable, Context, Kind, RunError
from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.environment.processes import Child, child_process, nightwire, python
from nightwire.core.kafka import ensure_topics
from nightwire.core.stack import free_port
from nightwire.schemas import topics

DEBIAN = Path("/usr/bin/python3")
"""Debian's Python, whose python3-gdbm Comet's event database needs."""
TMPFS = Path("/dev/shm")  # noqa: S108  (memory is what the paper's best setting uses)
STARTING = 60.0
"""Longest wait until a broker listens. [s]"""
OPTIONS = (
    "--replay=0s",
    *(f"--feed-role={role}" for role in ("observation", "prediction", "utility", "test")),
)
"""Of our gateway: like Comet, it sends events of all roles, and nothing from before."""
_TWISTD = "import sys; from twisted.scripts.twistd import run; sys.argv[0] = 'twistd'; run()"
_KIND = "import dbm, tempfile, os; p = os.path.join(tempfile.mkdtemp(), 'x'); dbm.open(p, 'c').close(); "
_KIND += "print(dbm.whichdb(p))"


@dataclass(frozen=True)
class VtpBroker:
    """A broker that runs.

    Attributes:
        authors: Port for authors.
        subscribers: Port for subscribers.
        process: It.
        trace: File of its own time stamps, where it writes one.
    """

    authors: int
    subscribers: int
    process: psutil.Process
    trace: Path | None = None

    def cpu(self) -> float:
        """Return what CPU time it took so far. [s]"""
        times = self.process.cpu_times()
        return float(times.user + times.system)


def debian_python() -> list[str]:
    """Return the start of a command line for Debian's Python, which finds Comet."""
    return ["/usr/bin/env", f"PYTHONPATH={sysconfig.get_path('purelib')}", "PYTHONUTF8=1", str(DEBIAN), "-S"]


def check_comet() -> str:
    """Return the kind of Comet's event database.

    Raises:
        RunError: It is the one that is slow by itself, so that a comparison would be worth nothing.
    """
    if not DEBIAN.exists():
        raise RunError(f"Comet is measured under Debian's Python, and there is no {DEBIAN}")
    done = subprocess.run([*debian_python(), "-c", _KIND], capture_output=True, text=True, check=True)
    if (kind := done.stdout.strip()) != "dbm.gnu":
        raise RunError(
            f"Comet's event database would be {kind}, which is slow by itself: apt-get install python3-gdbm"
        )
    return kind


@contextmanager
def comet(context: Context, *options: str, remote: int | None = None) -> Iterator[VtpBroker]:
    """Run Comet 3.1, as author's and subscribers' broker."""
    authors, subscribers = free_port(), free_port()
    with TemporaryDirectory(prefix="nightwire-comet-", dir=TMPFS) as folder:
        words = [*debian_python(), "-c", _TWISTD, "-n", "--reactor=epoll", f"--pidfile={folder}/pid", "comet"]
        words += [
            f"--eventdb={folder}",
            "--local-ivo=ivo://bench.comet/broker",
            "--broadcast-test-interval=0",
        ]
        words += ["--receive", f"--receive-port={authors}", "--broadcast", f"--broadcast-port={subscribers}"]
        if remote is not None:
            words.append(f"--remote=127.0.0.1:{remote}")
        with child_process(context, [*words, *options], "comet") as child:
            yield _listening(child, authors, subscribers)


@contextmanager
def gateway(
    context: Context, cluster: Cluster, *options: str, trace: Path | None = None
) -> Iterator[VtpBroker]:
    """Run our gateway."""
    names = [topics.VOEVENTS, topics.ACCOUNTS, topics.DEAD_LETTERS]
    ensure_topics(cluster.bootstrap, [topics.settings(name) for name in names])
    authors, subscribers = free_port(), free_port()
    verb = (
        nightwire()
        if trace is None
        else [*python("nightwire.benchmarks.scenarios.gateway.traced"), str(trace)]
    )
    words = [*verb, "gateway", "serve", "--bootstrap", cluster.bootstrap, "--metrics-port", str(free_port())]
    words += ["--authors", f"127.0.0.1:{authors}", "--subscribers", f"127.0.0.1:{subscribers}", *options]
    with (
        TemporaryDirectory(prefix="gateway-", dir=context.folder) as state,
        child_process(context, [*words, "--state", state], "gateway") as child,
    ):
        yield _listening(child, authors, subscribers, trace)


def _listening(child: Child, authors: int, subscribers: int, trace: Path | None = None) -> VtpBroker:
    """Return the broker that *child* is, once both its ports take connections.

    Raises:
        ChildError: It ended.
    """
    for port in (authors, subscribers):
        child.until(partial(_open, port), timeout=STARTING, pause=0.05)
    return VtpBroker(authors, subscribers, psutil.Process(child.process.pid), trace)


def _open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class VtpBrokers(Closeable):
    """Our gateway on a Kafka, and Comet; `close` ends them.

    Args:
        context: Says where, and which Kafka.
    """

    def __init__(self, context: Context) -> None:
        self.context, self.cluster = context, self.closing(Cluster(context))

    def broker(self, kind: Kind) -> VtpBroker:
        """Return the broker of *kind*."""
        return self.ours if kind is Kind.SUBJECT else self.comet

    @cached_property
    def ours(self) -> VtpBroker:
        """Our gateway."""
        self.context.say("starting the gateway")
        return self.exits.enter_context(gateway(self.context, self.cluster, *OPTIONS))

    @cached_property
    def traced(self) -> VtpBroker:
        """A second gateway of ours on the same Kafka, which notes time stamps."""
        trace = self.context.folder / "trace.tsv"
        options = (*OPTIONS, "--no-accounts", "--ivorn=ivo://bench/traced")
        return self.exits.enter_context(gateway(self.context, self.cluster, *options, trace=trace))

    @cached_property
    def comet(self) -> VtpBroker:
        """Comet."""
        self.context.say("starting Comet")
        return self.exits.enter_context(comet(self.context))

    def second(self, kind: Kind) -> VtpBroker:
        """Return a broker that has its events from that of *kind*."""
        return self.traced if kind is Kind.SUBJECT else self._second_comet

    @cached_property
    def _second_comet(self) -> VtpBroker:
        return self.exits.enter_context(comet(self.context, remote=self.comet.subscribers))
