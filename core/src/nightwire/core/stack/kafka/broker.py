"""One real Apache Kafka broker in KRaft mode, from its jars, without Docker."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from nightwire.core.runtime import die_with_parent, java_classes, java_home
from nightwire.core.runtime.credentials import write_private_file
from nightwire.core.stack.kafka.jars import jar_folder
from nightwire.core.stack.kafka.storage import format_storage

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=CLIENT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=CLIENT://127.0.0.1:{port}
listener.security.protocol.map=CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENT
controller.listener.names=CONTROLLER
log.dirs={logs}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=8388608
replica.fetch.max.bytes=16777216
# a broker that was killed may come back as soon as its old registration has expired
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
# a test stream of days stays in its disk: old segments go soon after they are closed
log.retention.check.interval.ms=15000
log.segment.delete.delay.ms=1000
log.cleaner.backoff.ms=5000
"""

LOGGING = """\
Configuration:
  status: WARN
  Appenders:
    Console:
      name: STDOUT
      target: SYSTEM_OUT
      PatternLayout: {pattern: "%d{yyyy-MM-dd'T'HH:mm:ssZ} %p %c{1} %m%n"}
  Loggers:
    Root:
      level: WARN
      AppenderRef: {ref: STDOUT}
    Logger:
      - {name: kafka.server.KafkaRaftServer, level: INFO}
      - {name: kafka.server.BrokerServer, level: INFO}
      - {name: org.apache.kafka.server, level: WARN}
"""

OPTIONS = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:TieredStopAtLevel=1")
"""Java's quick compiler alone: the other takes a core of a small machine for a minute."""

BRIEF = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For a Java that runs for a second, and has to start fast."""

STARTED = "Kafka Server started"


class BrokerError(Exception):
    """Kafka did not start; the message holds the end of its log."""


class Broker:
    """A broker whose data live in *folder*; `prepare` it once, then run `command` or `start`.

    Args:
        folder: Its data, settings and log.
        port: Where clients connect.
        controller: Where the controller listens.
        heap: Java's heap, as ``-Xmx`` takes it.
        properties: Settings of Kafka's own beside ours, such as ``log.retention.bytes``; they
            displace ours.
        options: Of Java, such as ``-Dname=value``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int,
        controller: int,
        heap: str = "512m",
        properties: Mapping[str, object] = MappingProxyType({}),
        options: Sequence[str] = (),
    ) -> None:
        self.folder, self.port, self._controller, self._heap = folder, port, controller, heap
        self._properties, self._options = properties, options
        self.log = folder / "kafka.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Write the settings and format the storage, where that was not done.

        Raises:
            BrokerError: Formatting failed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        logs = self.folder / "data"
        settings = PROPERTIES.format(port=self.port, controller=self._controller, logs=logs)
        more = "".join(f"{name}={value}\n" for name, value in self._properties.items())
        write_private_file(self._settings, settings + more)  # passwords may be among them
        (self.folder / "log4j2.yaml").write_text(LOGGING)
        format_storage(logs, kafka_archive().with_suffix(".checkpoint"), self._format)

    def _format(self, cluster: str) -> None:
        tool = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)]
        done = subprocess.run([*self._java(*BRIEF), *tool], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"Kafka's storage could not be formatted: {done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        """Return the command line that runs the broker in the foreground."""
        options = (f"-Xmx{self._heap}", *OPTIONS, *self._options)
        return [*self._java(*options), "kafka.Kafka", str(self._settings)]

    def start(self, *, timeout: float = 90.0) -> None:
        """Start the broker as a child and wait until it serves.

        Raises:
            BrokerError: It ended, or did not serve within *timeout* [s].
        """
        self.prepare()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509  (no threads before the fork matter here)
            )
        deadline = time.monotonic() + timeout
        while STARTED not in (output := self.log.read_text(errors="replace")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise BrokerError(f"Kafka did not start: {output[-2000:]}")
            time.sleep(0.05)

    def stop(self, *, timeout: float = 15.0) -> None:
        """Stop cleanly; kill it where that takes longer than *timeout* [s]."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill it as a power cut would."""
        if self._process is not None and self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    def _java(self, *options: str) -> list[str]:
        java = str(java_home() / "bin" / "java")
        logging = f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"
        quick = java_classes.options(kafka_archive())
        return [java, *quick, *options, logging, "-cp", f"{jar_folder()}/*"]


AGENT = "jmx_prometheus_javaagent-*.jar"
"""It comes with Kafka's jars."""
RULES: Traversable = files("nightwire.core.stack.kafka") / "jmx.yml"
"""What it tells."""


def agent_options(port: int) -> tuple[str, ...]:
    """Return Java's options for an agent whose page is at *port*, on this machine.

    Raises:
        JarError: Kafka's jars could not be fetched, or are not the pinned ones.
    """
    (jar,) = jar_folder().glob(AGENT)
    return (f"-javaagent:{jar}=127.0.0.1:{port}:{RULES}",)


@cache
def kafka_archive() -> Path:
    """Return where the archive of Kafka's classes is, or would be."""
    return java_classes.archive("kafka", jar_folder().glob("*.jar"))
