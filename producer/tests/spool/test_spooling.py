"""A pipeline goes on while Kafka is away, and dies, and nothing is lost."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import DeliveryError, Record, ensure_topics, producer, read_to_end
from nightwire.core.stack import Broker, free_port
from nightwire.producer import AlertWriter
from nightwire.producer.spool.spool import SPOOLED_HEADER, Spool, SpoolFullError
from nightwire.producer.spool.spooling import SpoolingWriter
from nightwire.producer.visits.abandoned import known_visits
from nightwire.producer.visits.counts import VisitCounts
from nightwire.producer.writing.visit_writer import VisitWriter
from nightwire.schemas import SIM_ALERT_ID, Codec, survey
from nightwire.schemas.topics import TopicSettings, settings
from tests._waiting import until

Alerts = list[dict[str, Any]]

VISIT = 2026030143200
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOPICS = ("alerts.sim", "visits", "accounts", "dead-letters")


def nowhere() -> str:
    """Return an address at which no Kafka listens."""
    return f"127.0.0.1:{free_port()}"


def test_alerts_go_to_disk_while_kafka_is_silent_and_a_flush_returns(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit=10_000) as spool:
        writer = SpoolingWriter(producer(nowhere()), spool, patience=0.2)
        writer.put(Record("alerts.sim", b"1", b"k"), visit=VISIT)
        writer.flush()
        writer.put(Record("alerts.sim", b"2", b"k"), visit=VISIT)
        assert writer.spooling
        assert [one.value for _seq, one in spool.after(0, 1000)] == [b"1", b"2"]
        writer.close(patience=0.0)


def test_a_full_spool_is_an_error_that_says_what_to_do_and_the_alert_can_be_offered_again(
    tmp_path: Path, visit: Alerts, codec: Codec
) -> None:
    size = len(codec.encode(visit[0]))
    spool = Spool(tmp_path / "spool", limit=2 * size + 1000)
    writer = AlertWriter(producer(nowhere()), survey("sim"), codec, SIM_ALERT_ID, spool=spool)
    assert isinstance(writer.records, SpoolingWriter)
    writer.records._patience = 0.2
    one = VisitWriter(writer, writer.visit_topic.open(VISIT))
    for _turn in range(2):
        one.write(visit[0])
    writer.flush()
    for _turn in range(2):
        with pytest.raises(SpoolFullError, match="bring it back"):
            one.write(visit[0])
    assert one.counts.offered == 2
    writer.records.close(patience=0.0)


@pytest.mark.slow
def test_a_failed_delivery_stays_in_the_spool_and_others_do_not_overtake_it(
    tmp_path: Path, bootstrap: str
) -> None:
    path = tmp_path / "spool"
    with Spool(path, limit=1 << 20) as spool:
        writer = SpoolingWriter(producer(nowhere(), delivery_timeout_ms=400), spool, patience=0.1)
        for number in range(20):
            writer.put(Record("spooled", b"%d" % number, b"k"))
        writer.flush()
        until(lambda: writer.rewinds > 0)  # they time out, and are sent again
        writer.close(patience=0.0)
        assert len(spool) == 20
    with Spool(path, limit=1 << 20) as spool:
        again = SpoolingWriter(producer(bootstrap), spool)
        again.begin(lambda _ledger: ())
        again.put(Record("spooled", b"20", b"k"))
        assert again.drained(patience=60.0)
        again.put(Record("spooled", b"21", b"k"))
        again.flush()
        again.close()
    found = list(read_to_end(bootstrap, ["spooled"]))
    assert [int(message.value() or b"") for message in found] == list(range(22))
    marked = [(SPOOLED_HEADER, b"1") in (message.headers() or []) for message in found]
    assert marked == [True] * 21 + [False]


def test_a_spool_that_breaks_while_it_is_sent_is_an_error_of_the_next_call(tmp_path: Path) -> None:
    with Spool(tmp_path / "spool", limit=1 << 20) as spool:
        writer = SpoolingWriter(producer(nowhere()), spool, patience=0.1)
        writer.put(Record("spooled", b"1", b"k"))
        writer.flush()
        with writer._lock:
            spool._db.execute("alter table record rename to gone")
            writer._sent = 0
        assert writer._thread is not None
        writer._thread.join(60)
        assert not writer._thread.is_alive()
        with pytest.raises(DeliveryError, match=r"spool .*: no such table: record"):
            writer.put(Record("spooled", b"2", b"k"))
        with pytest.raises(DeliveryError, match="no such table"):
            writer.flush()


@pytest.mark.slow
def test_a_full_queue_of_librdkafka_does_not_end_the_thread(tmp_path: Path) -> None:
    client = producer(nowhere(), queue_buffering_max_messages=1)
    with Spool(tmp_path / "spool", limit=1 << 20) as spool:
        writer = SpoolingWriter(client, spool, patience=0.05)
        for number in range(3):
            writer.put(Record("spooled", b"%d" % number, b"k"))
        writer.flush()
        assert not writer.drained(patience=0.5)
        assert writer._thread is not None
        assert writer._thread.is_alive()
        writer.close(patience=0.0)
        assert len(spool) == 3


def test_what_kafka_refuses_for_what_it_is_does_not_hide_in_the_spool(tmp_path: Path) -> None:
    class Refusing:
        """A Kafka that does not let us write."""

        def produce(self, *_args: Any, on_delivery: Any, **_rest: Any) -> None:
            """Refuse."""
            on_delivery(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), self)

        def poll(self, _timeout: float) -> int:
            """Serve nothing."""
            return 0

        def value(self) -> bytes:
            """Return nothing."""
            return b""

        key = value

    client: Any = Refusing()
    with Spool(tmp_path / "spool", limit=1000) as spool:
        writer = SpoolingWriter(client, spool)
        writer.put(Record("alerts.sim", b"1"))
        with pytest.raises(DeliveryError, match="TOPIC_AUTHORIZATION_FAILED"):
            writer.put(Record("alerts.sim", b"2"))
        with pytest.raises(DeliveryError, match="TOPIC_AUTHORIZATION_FAILED"):
            writer.flush()
        assert spool.is_empty


@pytest.mark.kafka
def test_a_record_too_large_for_its_topic_leaves_the_spool_as_refused(kafka: str, tmp_path: Path) -> None:
    topic = f"alerts.t{os.urandom(4).hex()}"
    ensure_topics(kafka, [TopicSettings(topic, 1, {"max.message.bytes": "50000"})])
    closed: list[VisitCounts] = []

    def closing(counts: VisitCounts) -> list[Record]:
        closed.append(counts)
        return []

    with Spool(tmp_path / "spool", limit=1 << 20) as spool:
        for number in range(5):
            value = os.urandom(200_000 if number == 2 else 1000)
            spool.append([(Record(topic, value, b"%d" % number), VISIT)])
        spool.end(VisitCounts("sim", VISIT, NOON, offered=5))
        writer = SpoolingWriter(producer(kafka, linger_ms=500), spool)
        writer.begin(closing)
        assert writer.drained(patience=60.0)
        writer.close()
    assert {message.key() for message in read_to_end(kafka, [topic])} == {b"0", b"1", b"3", b"4"}
    (counts,) = closed
    assert (counts.acknowledged, counts.refused) == (4, {"too-large": 1})


PIPELINE = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from nightwire.core.kafka import producer
from nightwire.producer import AlertWriter, Sky, VisitLog, Visits
from nightwire.producer.spool.spool import Spool
from nightwire.producer.writing.visit_writer import VisitWriter
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey

bootstrap, path, number, count = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
log = VisitLog(7, datetime(2026, 3, 1, 12, tzinfo=UTC))
log.open(datetime(2026, 3, 1, 12, tzinfo=UTC), number)
alerts = list(Visits(Sky(7, count), log).alerts())
with AlertWriter(
    producer(bootstrap), survey("sim"), Codec(sim_alert_schema()), SIM_ALERT_ID,
    spool=Spool(path, limit=1 << 30),
) as writer:
    writer.tidy(bootstrap)
    with writer.visit(number) as visit:
        for n, alert in enumerate(alerts):
            if n == count // 2:
                writer.flush()
                print("half", flush=True)
                sys.stdin.readline()
            visit.write(alert)
        writer.flush()
        print("all", flush=True)
        sys.stdin.readline()
    print("closed", flush=True)
    sys.stdin.readline()
"""


class Pipeline:
    """A survey's pipeline, which writes a visit and stops at each step."""

    def __init__(self, bootstrap: str, spool: Path, visit: int, count: int) -> None:
        words = [sys.executable, "-c", PIPELINE, bootstrap, str(spool), str(visit), str(count)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def reaches(self, word: str) -> None:
        """Wait until it has come so far."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == f"{word}\n"

    def go_on(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """Kill it, and wait."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def ends(self) -> None:
        """Let it go on and wait until it ends well."""
        self.go_on()
        self.process.communicate(timeout=90)
        assert self.process.returncode == 0


def ids(kafka: str, codec: Codec) -> list[int]:
    """Return the ids of the alerts in the topic."""
    messages = read_to_end(kafka, ["alerts.sim"])
    return [codec.decode((message.value() or b"")[5:])["diaSourceId"] for message in messages]


def delivered(kafka: str, visit: int) -> tuple[int, int]:
    """Return what the account of *visit* says: read and delivered."""
    (account,) = [one for one in read_accounts(kafka) if one.first == visit]
    return account.read, account.delivered


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("killed_at", [None, "all", pytest.param("closed", marks=pytest.mark.proof)])
def test_a_broker_and_a_pipeline_that_die_lose_nothing_and_the_accounts_agree(
    killed_at: str | None, fresh_broker: Broker, tmp_path: Path, codec: Codec
) -> None:
    kafka, spool, count = fresh_broker.bootstrap, tmp_path / "spool", 60
    ensure_topics(kafka, [settings(name) for name in TOPICS])
    pipeline = Pipeline(kafka, spool, VISIT, count)
    pipeline.reaches("half")
    fresh_broker.kill()
    pipeline.go_on()
    pipeline.reaches("all")
    if killed_at == "closed":
        pipeline.go_on()
        pipeline.reaches("closed")
    if killed_at is not None:
        pipeline.kill()
    fresh_broker.start()
    if killed_at is None:
        pipeline.go_on()
        pipeline.reaches("closed")
        pipeline.ends()
    else:
        after = Pipeline(kafka, spool, VISIT + 1, 2)
        for word in ("half", "all", "closed"):
            after.reaches(word)
            after.go_on()
        after.process.communicate(timeout=90)
    found = [one for one in ids(kafka, codec) if one // 1_000_000 == VISIT]
    assert len(set(found)) == count
    known = known_visits(kafka, "sim")[VISIT].record
    assert known["closed"] is not None
    assert known["estimated"] is (killed_at == "all")
    assert delivered(kafka, VISIT) == ((len(found),) * 2 if killed_at == "all" else (count, count))
    assert discrepancies(read_accounts(kafka)) == []
    with Spool(spool, limit=1) as left:
        assert left.is_empty
