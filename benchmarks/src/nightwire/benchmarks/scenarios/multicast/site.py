"""A site for the network experiments: Kafka, relays, receivers on a LAN of namespaces."""

import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from queue import SimpleQueue
from typing import Any

from confluent_kafka import Producer

from nightwire.benchmarks import Closeable, Context, RunError
from nightwire.benchmarks.environment.lan import DEVICE, Lan, is_possible, lan
from nightwire.benchmarks.environment.processes import Child, child_process
from nightwire.benchmarks.workers.client import WorkerClient, worker_process
from nightwire.core.datagrams import read_channels
from nightwire.core.kafka import ensure_topics, producer
from nightwire.core.stack import Broker, free_port
from nightwire.schemas.topics import TopicSettings

RECEIVER = "nightwire.benchmarks.workers.multicast_receiver"
RELAY = "from nightwire.multicast.commands import relay; relay()"
PATIENCE = 90.0
"""Longest wait for anything. [s]"""
SILENCE = 15.0
"""After so long without a record, a receiver ends. [s]"""
SOURCES = 2
"""So many write at once, at most."""
STEP = 0.002
"""Records are written so often. [s]"""
LOOPBACK = "127.0.0.1"
HERE = -1
"""In place of a host: where relays are."""
POOL = 16 << 20
"""Random bytes that records are cut from. [byte]"""


class Site(Closeable):
    """Kafka, and hosts that reach it over a LAN; on the loopback where there can be no LAN.

    Args:
        context: Says where files go.
        hosts: How many there are.
    """

    def __init__(self, context: Context, hosts: int) -> None:
        self._context = context
        self.lan: Lan | None = self.exits.enter_context(lan(hosts)) if is_possible() else None
        self.address = self.lan.address if self.lan else LOOPBACK
        self._broker = self._started()
        self.bootstrap = self._broker.bootstrap
        self._numbers = iter(range(1, 1 << 16))
        self._pool, self._producers = secrets.token_bytes(POOL), SimpleQueue[Producer]()
        for _ in range(SOURCES):
            self._producers.put(self._connected())

    def topic(self, partitions: int = 1) -> str:
        """Return a new topic."""
        name = f"multicast-{secrets.token_hex(4)}"
        ensure_topics(self.bootstrap, [TopicSettings(name, partitions)])
        return name

    def group(self) -> str:
        """Return a multicast group that was not used before."""
        return f"239.255.7.{next(self._numbers) % 250 + 1}:{free_port()}"

    @contextmanager
    def relay(self, topic: str, group: str | None = None, *more: str) -> Iterator[Child]:
        """Run a relay, whose channel is known; without a *group*, of the channels of *topic*."""
        words = ["--topic", topic, *(["--group", group] if group else ["--mapped"])]
        words += ["--interface", self.address]
        words += ["--bootstrap", self.bootstrap, *more]
        name, known = f"relay-{secrets.token_hex(4)}", f"to {group}" if group else "from offset"
        log = self._context.folder / f"{name}.log"
        command = [sys.executable, "-c", RELAY, "serve", *words]
        with child_process(self._context, command, "relay", log=name) as child:
            child.until(lambda: known in log.read_text(errors="replace"), timeout=PATIENCE, pause=0.05)
            if group and group not in read_channels(self.bootstrap, topic):
                raise RunError(f"no relay of {topic} on {group}")
            yield child

    @contextmanager
    def receivers(
        self, hosts: Sequence[int], topic: str, group: str, wanted: int, where: str | None = None
    ) -> Iterator[Sequence[WorkerClient]]:
        """Yield receivers, one on each of *hosts*, in place; without a *group* they read Kafka."""
        order: dict[str, Any] = {"topic": topic, "group": group, "wanted": wanted, "patience": SILENCE}
        order["where"] = where
        with ExitStack() as exits:
            clients = [exits.enter_context(self.worker(RECEIVER, host, order)) for host in hosts]
            for client in clients:
                client.await_ready()
            yield clients

    def write(self, topic: str, count: int, size: int, rate: float) -> None:
        """Write *count* records of *size* bytes at so many a second.

        They are random, so that Kafka's compression makes them no smaller: datagrams have none.
        """
        begins = (number * size % (POOL - size) for number in range(count))
        self.write_values(topic, (self._pool[begin : begin + size] for begin in begins), rate)

    def write_values(self, topic: str, values: Iterable[bytes], rate: float) -> None:
        """Write *values* at so many a second."""
        client = self._producers.get()
        client.list_topics(topic, timeout=PATIENCE)
        began = time.perf_counter()
        for number, value in enumerate(values):
            if number % max(1, round(rate * STEP)) == 0:
                time.sleep(max(0.0, began + number / rate - time.perf_counter()))
                client.poll(0)
            client.produce(topic, value)
        if client.flush(PATIENCE):
            raise RunError("Kafka did not take all records")
        self._producers.put(client)

    def lose(self, hosts: Sequence[int], share: float, group: str) -> None:
        """Let *hosts* lose a share of what comes to a group; nothing is lost on the loopback."""
        for host in hosts if self.lan else ():
            self.lan.lose(host, share, group.partition(":")[0]) if self.lan else None

    def on_disk(self, topic: str) -> int:
        """Return the bytes of *topic* as Kafka keeps them, and sends them to each reader."""
        logs = (self._context.folder / "site").glob(f"**/{topic}-*/*.log")
        return sum(one.stat().st_size for one in logs)

    def worker(
        self, module: str, host: int, order: Mapping[str, Any]
    ) -> AbstractContextManager[WorkerClient]:
        """Yield a worker on a host; its order has Kafka's address and the interface, too."""
        lan = self.lan if host != HERE else None
        bootstrap = f"{self.address}:{self._lan_port}" if lan else self.bootstrap
        device = DEVICE if lan else self.lan.bridge if self.lan else "lo"
        whole = {**order, "bootstrap": bootstrap, "interface": device}
        role, inside = "relay" if host == HERE else "receiver", lan.on(host, ()) if lan else ()
        return worker_process(self._context, module, whole, role=role, log=f"worker-{host}", inside=inside)

    def _connected(self) -> Producer:
        """Return a producer that has written: its first record takes up to a second."""
        client = producer(self.bootstrap, linger_ms=1)
        client.produce(self.topic(), b"")
        if client.flush(PATIENCE):
            raise RunError("Kafka takes no record")
        return client

    def _started(self) -> Broker:
        port, controller, self._lan_port = free_port(), free_port(), free_port()
        local = f"CLIENT://{LOOPBACK}:{port},LAN://{self.address}:{self._lan_port}"
        self._context.say("starting Kafka" + ("" if self.lan else " (no namespaces here: on the loopback)"))
        settings = {
            "listeners": f"{local},CONTROLLER://{LOOPBACK}:{controller}",
            "advertised.listeners": local,
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,LAN:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "group.min.session.timeout.ms": 1000,
        }
        broker = Broker(self._context.folder / "site", port=port, controller=controller, properties=settings)
        self.exits.callback(broker.stop)
        broker.start()
        return broker


class SharedSite(Closeable):
    """A site that experiments share, made when the first of them asks.

    Args:
        context: What the harness gives.
        hosts: How many there are.
    """

    def __init__(self, context: Context, hosts: int) -> None:
        self._context, self._hosts = context, hosts

    @cached_property
    def site(self) -> Site:
        """The site."""
        return self.closing(Site(self._context, self._hosts))
