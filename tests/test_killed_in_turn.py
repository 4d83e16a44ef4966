"""From a file to a subscriber, while producer, ingest, consumer and broker are killed in turn."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Message

from nightwire.core.kafka import ensure_topics, read_to_end
from nightwire.core.stack import Broker, die_with_parent
from nightwire.schemas import Codec
from nightwire.schemas.topics import settings
from nightwire.schemas.wire import unframe
from producer.tests.ingest.survey_kafka import lsst_schema, place
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ALERTS = 4000
RATE = 100
"""Alerts a second: slow enough for every death to fall into the visit."""

VISIT = 2026030100001
NIGHTWIRE = (sys.executable, "-m", "nightwire.core.cli")
CONSUMER = """
import sys
from nightwire.consumers import AlertReader

with AlertReader("alerts.lsst", group="archive", member="one") as reader, open(sys.argv[1], "a") as archive:
    for received in reader:
        print(received.view.id, file=archive, flush=True)
"""


@dataclass
class Process:
    """What is killed with -9, and started again as it was.

    Attributes:
        command: What it runs.
        env: Its environment.
        log: Takes what it says.
    """

    command: tuple[str, ...]
    env: dict[str, str]
    log: Path
    child: "subprocess.Popen[bytes]" = field(init=False)

    def start(self) -> None:
        with self.log.open("ab") as out:
            self.child = subprocess.Popen(
                self.command,
                stdout=out,
                stderr=out,
                env=self.env,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()

    def ended(self) -> int | None:
        return self.child.poll()


@dataclass
class Chain:
    """Files, `replay`, `alerts.sim`, `ingest`, `alerts.lsst`, `AlertReader`, an archive."""

    broker: Broker
    producer: Process
    ingest: Process
    consumer: Process
    archive: Path

    def archived(self) -> set[int]:
        return {int(line) for line in self.archive.read_text().split()} if self.archive.exists() else set()

    def await_news(self) -> None:
        """Wait until a hundred alerts have arrived that never came before."""
        wanted = len(self.archived()) + 100
        self.until(lambda: len(self.archived()) >= wanted)

    def until(self, holds: Callable[[], bool], timeout: float = 90.0) -> None:
        """Wait until *holds*; meanwhile do what a supervisor does.

        Ingest ends where Kafka gave its transaction up; it has lost nothing, and goes on from its
        mark.
        """

        def tended() -> bool:
            if self.ingest.ended() is not None:
                self.ingest.start()
            return holds()

        until(tended, self.said, timeout)

    def messages(self, topic: str) -> list[Message]:
        return list(read_to_end(self.broker.bootstrap, [topic]))

    def said(self) -> str:
        return "\n".join(one.log.read_text()[-2000:] for one in (self.producer, self.ingest, self.consumer))


@pytest.fixture
def chain(
    fresh_broker: Broker, serve_registry: Callable[[str], AbstractContextManager[str]], tmp_path: Path
) -> Iterator[Chain]:
    """Yield a chain whose processes run."""
    night, archive, kafka = tmp_path / "night.avro", tmp_path / "archive", fresh_broker.bootstrap
    write_night(night)
    ensure_topics(kafka, [settings("alerts.sim"), settings("alerts.lsst")])
    with serve_registry(kafka) as url, ExitStack() as running:
        ours = {"KAFKA_BOOTSTRAP_SERVERS": kafka, "NIGHTWIRE_SCHEMA_REGISTRY": url}
        env = os.environ | ours | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        replay = (*NIGHTWIRE, "replay", str(night), "--survey", "sim", "--rate", f"{RATE}/s", "--json")
        mirror = (*NIGHTWIRE, "ingest", "--survey", "lsst", "--from", kafka, "--topic", "alerts.sim")
        processes = [
            Process(replay, env, tmp_path / "replay.log"),
            Process((*mirror, "--source-registry", url), env, tmp_path / "ingest.log"),
            Process((sys.executable, "-c", CONSUMER, str(archive)), env, tmp_path / "consumer.log"),
        ]
        for one in processes:
            one.start()
            running.callback(one.kill)
        yield Chain(fresh_broker, *processes, archive)


def write_night(path: Path) -> None:
    """Write small alerts of one visit into a container."""
    sources = ({"diaSourceId": n, "visit": VISIT, "diaObjectId": 1 + n % 50} for n in range(1, ALERTS + 1))
    alerts = [{"diaSourceId": one["diaSourceId"], "diaSource": one, "pad": b"stamps"} for one in sources]
    with path.open("wb") as out:
        fastavro.writer(out, lsst_schema(), alerts)


def alert_id(message: Message) -> int:
    return int(Codec(lsst_schema()).decode(unframe(message.value() or b"")[1])["diaSourceId"])


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_whoever_dies_during_a_visit_what_went_in_comes_out_and_the_accounts_agree(chain: Chain) -> None:
    for victim in (chain.producer, chain.ingest, chain.consumer, chain.broker):
        chain.await_news()
        assert chain.producer.ended() is None, "the visit was over before everybody had died"
        victim.kill()
        victim.start()
    chain.until(lambda: chain.producer.ended() is not None, timeout=200)
    assert chain.producer.ended() == 0, chain.said()
    sent = chain.messages("alerts.sim")
    chain.until(lambda: len(chain.messages("alerts.lsst")) >= len(sent))
    chain.until(lambda: len(chain.archived()) >= ALERTS)
    chain.ingest.child.send_signal(signal.SIGTERM)
    assert chain.ingest.child.wait(60) == 0, chain.said()
    everything = set(range(1, ALERTS + 1))
    mirrored = chain.messages("alerts.lsst")
    assert chain.archived() == set(map(alert_id, mirrored)) == set(map(alert_id, sent)) == everything
    lay = [(message.topic(), message.partition(), message.offset()) for message in sent]
    assert Counter(map(place, mirrored)) == Counter(lay)  # each once: none lost, none doubled
    assert accounted(chain) == {"producer": len(sent), "ingest": len(sent)}


def accounted(chain: Chain) -> dict[str, int]:
    """Return what each stage delivered, by accounts that prove that in = out."""
    command = [*NIGHTWIRE, "accounts", "--json"]
    env = chain.producer.env
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)  # noqa: PLW1510
    said = json.loads(done.stdout)
    assert (done.returncode, said["discrepancies"]) == (0, [])
    return {one["stage"]: one["delivered"] for one in said["stages"]}
