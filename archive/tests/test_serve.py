"""`nightwire archive serve` on a real Kafka: each record once, wherever it is killed."""

import random
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from archive.tests.conftest import Known, message, packet, put, serving, writer
from nightwire.archive import Archive
from nightwire.archive.check import Comparison, compare
from nightwire.archive.commands import archive
from nightwire.archive.serve import RestartingConsumer, ServeSettings, opened_consumer, running
from nightwire.archive.storage import Packet, StorageError, Store
from nightwire.archive.writing import ArchiveConsumer, Batching, SurveyWriter
from nightwire.archive.writing.survey_writer import WriteResult
from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.core.kafka import TopicPartition, Writer, ensure_topics, producer, read_to_end
from nightwire.core.runtime import Endpoints, free_port
from nightwire.core.stack import Broker
from nightwire.schemas.topics import settings
from tests._waiting import until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def site(
    fresh_broker: Broker, serve_registry: Callable[[str], AbstractContextManager[str]]
) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a Kafka of this test's own, and of its registry."""
    names = ("alerts.sim", "accounts", "dead-letters", "_schemas", "directory")
    ensure_topics(fresh_broker.bootstrap, [settings(name) for name in names])
    with serve_registry(fresh_broker.bootstrap) as url:
        yield fresh_broker.bootstrap, url


def serve_settings(folder: Path, where: Endpoints) -> ServeSettings:
    """Return how an archive in *folder* is run that writes at once."""
    return ServeSettings(store=Store(folder), where=where, schedule="constant", batching=Batching(0.2))


def await_archived(folder: Path, kafka: str, wanted: int, patience: float = 120.0) -> list[Comparison]:
    """Wait until the archive has so many records; return what comparing it with Kafka finds."""

    def compared() -> list[Comparison]:
        with Archive(folder) as archive:
            found = [*compare(kafka, archive, "sim")] if archive.surveys else []
        whole = sum(one.records for one in found) >= wanted and not any(one.waiting for one in found)
        return found if whole else []

    return until(compared, lambda: (folder.parent / "log").read_text()[-3000:], patience, tick=0.3)


def test_each_record_is_archived_once_however_often_it_is_killed(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    kafka, registry = site
    folder, chance = tmp_path / "archive", random.Random(7)
    folder.mkdir()
    Writer(producer(kafka)).write("alerts.sim", b"no alert", key=b"x")
    words = ("--every", "200ms", "--batch", "300kB", "--port")
    for round_ in range(3):
        simulate(kafka, 600 * round_ + 1, 600 * (round_ + 1) + 1)
        with serving(folder, kafka, registry, *words, str(free_port())) as child:
            time.sleep(1.5 + 2.5 * chance.random())  # killed at some moment, whatever it does
            child.kill()
    bad = Writer(producer(kafka))
    bad.write("alerts.sim", b"no alert", key=b"x")
    bad.flush()
    with serving(folder, kafka, registry, *words, str(free_port())) as child:
        compared = await_archived(folder, kafka, 1801)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0, (folder.parent / "log").read_text()[-3000:]
    assert [one for one in compared if not one.same] == []
    assert sum(one.unreadable for one in compared) == sum(one.records for one in compared) - 1800
    with Archive(folder) as found:
        (row,) = found.query("SELECT count(*) AS n, count(DISTINCT id) AS ids FROM sim").to_pylist()
        assert row == {"n": 1800, "ids": 1800}
        assert len(found.object(10**6 + 7)) == 3
        (whole,) = found.packets(1799)
        assert found.decode(whole).alert["cutoutScience"] == (1799).to_bytes(8, "big") * 50
    accounts = [one for one in read_accounts(kafka) if one.stage == "archive"]
    assert discrepancies(accounts) == []
    assert sum(one.delivered for one in accounts) == 1800
    dead = [one.value() for one in read_to_end(kafka, ["dead-letters"])]
    assert set(dead) == {b"no alert"}
    assert sum(one.dead_lettered for one in accounts) == sum(one.unreadable for one in compared)
    shown = CliRunner().invoke(archive, ["check", "--archive", str(folder), "--bootstrap", kafka])
    assert shown.exit_code == 0, shown.output


def simulate_in_transactions(bootstrap: str, first: int, end: int) -> None:
    """Write as `nightwire ingest` does: behind each transaction a marker lies, no record."""
    out = producer(bootstrap, transactional_id="simulated", message_timeout_ms=30_000)
    out.init_transactions()
    for turn in range(3):
        out.begin_transaction()
        for number in range(first + turn, end, 3):
            out.produce("alerts.sim", message(number), key=b"%d" % number)
        out.commit_transaction()


def test_each_schedule_archives_all_in_the_end(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    kafka, registry = site
    for turn, schedule in enumerate(("rate", "state", "order")):
        folder = tmp_path / schedule / "archive"
        folder.mkdir(parents=True)
        words = ("--schedule", schedule, "--rate", "200kB", "--every", "200ms", "--port", str(free_port()))
        write = simulate_in_transactions if schedule == "order" else simulate
        write(kafka, 200 * turn + 1, 200 * turn + 101)
        with serving(folder, kafka, registry, *words) as child:
            write(kafka, 200 * turn + 101, 200 * turn + 201)
            compared = await_archived(folder, kafka, 200 * (turn + 1))
            child.send_signal(signal.SIGTERM)
            assert child.wait(60) == 0
        assert [one for one in compared if not one.same or one.unreadable] == []


def test_a_disk_that_fills_stops_nothing_and_loses_nothing(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    """No file of the process may be longer than 10 kB, for a while: what comes is kept."""
    kafka, registry = site
    folder, log = tmp_path / "archive", tmp_path / "log"
    folder.mkdir()
    page = free_port()
    words = ["--every", "200ms", "--port", str(free_port()), "--metrics-port", str(page)]
    with serving(folder, kafka, registry, *words, "--compact-every", "3s") as child:
        simulate(kafka, 1, 101)
        await_archived(folder, kafka, 100)
        size = log.stat().st_size
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (size + 10_000, resource.RLIM_INFINITY))
        simulate(kafka, 101, 1101)
        until(lambda: "not archived yet" in log.read_text())
        assert "nothing was written" in log.read_text()
        resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        compared = await_archived(folder, kafka, 1100)
        until(lambda: "last complete run at 20" in httpx.get(f"http://127.0.0.1:{page}/health").text)
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    assert [one for one in compared if not one.same or one.unreadable] == []
    DeltaTable(str(folder / "sim" / "alerts")).delete("offset = 3")
    DeltaTable(str(folder / "sim" / "index")).delete("offset = 5 AND kind = 'id'")
    with Archive(folder) as found:  # rows that are lost are no dead letters; the index has three too many
        hurt = [(one.missing, one.unreadable, one.index, one.same) for one in compare(kafka, found, "sim")]
    assert set(hurt) == {(1, 0, 4, False)}


def test_two_share_the_partitions_and_one_takes_over(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    kafka, registry = site
    folder = tmp_path / "archive"
    folder.mkdir()
    words = ("--every", "200ms", "--compact-every", "3s", "--port")
    with (
        serving(folder, kafka, registry, *words, str(free_port())) as one,
        serving(folder, kafka, registry, *words, str(free_port())) as other,
    ):
        for turn in range(5):
            simulate(kafka, 200 * turn + 1, 200 * turn + 201)
            time.sleep(1.0)  # both are at work meanwhile, and files are joined
        one.kill()
        simulate(kafka, 1001, 1201)
        compared = await_archived(folder, kafka, 1200)
        assert other.poll() is None, (folder.parent / "log").read_text()[-3000:]
    assert [found for found in compared if not found.same or found.unreadable] == []


def test_who_was_overtaken_goes_on_behind_the_other(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    """The group gave its partitions to another while it was writing."""
    kafka, registry = site
    folder = tmp_path / "archive"
    folder.mkdir()
    (tmp_path / "log").touch()
    simulate(kafka, 1, 201)

    class Overtaken(SurveyWriter):
        """Writes what another process has just written."""

        def write(
            self, packets: Sequence[Packet], positions: Mapping[TopicPartition, int | None]
        ) -> WriteResult:
            writer(folder).write(packets, positions) if not self.known else None
            self.known = True
            return super().write(packets, positions)

        known = False

    asked = serve_settings(folder, Endpoints(kafka, registry))
    overtaken = Overtaken(Store(folder), "sim", Known())

    @contextmanager
    def opened() -> Iterator[ArchiveConsumer]:
        with opened_consumer(asked, kafka) as consumer:
            consumer._writer_of = lambda _survey: overtaken
            yield consumer

    with running(RestartingConsumer(opened), lambda: None) as failures:
        compared = await_archived(folder, kafka, 200)
        simulate(kafka, 201, 301)
        compared = await_archived(folder, kafka, 300)
    assert (failures, [one for one in compared if not one.same]) == ([], [])
    accounts = [one for one in read_accounts(kafka) if one.stage == "archive"]
    assert (discrepancies(accounts), sum(one.delivered for one in accounts)) == ([], 300)


@pytest.mark.proof
def test_who_was_away_for_long_is_waited_for(
    fresh_broker: Broker,
    tmp_path: Path,
    simulate: Callable[[str, int, int], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The store while partitions are given, then Kafka between rows and their account."""
    kafka, folder = fresh_broker.bootstrap, tmp_path / "archive"
    folder.mkdir()
    (tmp_path / "log").touch()
    ensure_topics(kafka, [settings(name) for name in ("alerts.sim", "accounts", "dead-letters")])
    simulate(kafka, 1, 101)
    monkeypatch.setenv("KAFKA_MESSAGE_TIMEOUT_MS", "1500")
    happened = list[str]()

    class Upset(SurveyWriter):
        """Its store is away at first; Kafka, when the first rows are written."""

        def position(self, number: int) -> int | None:
            if not happened:
                happened.append("store")
                raise StorageError("the store does not answer")
            return super().position(number)

        def write(
            self, packets: Sequence[Packet], positions: Mapping[TopicPartition, int | None]
        ) -> WriteResult:
            written = super().write(packets, positions)
            if happened == ["store"]:
                happened.append("kafka")
                fresh_broker.kill()
            return written

    @contextmanager
    def opened() -> Iterator[ArchiveConsumer]:
        with opened_consumer(asked, kafka) as consumer:
            upset = Upset(Store(folder), "sim", Known())
            consumer._writer_of = lambda _survey: upset
            yield consumer

    asked = serve_settings(folder, Endpoints(kafka, "http://127.0.0.1:9"))
    with running(RestartingConsumer(opened), lambda: None) as failures:
        until(lambda: caplog.text.count("begins anew") >= 2 or failures, timeout=120)
        fresh_broker.start()
        monkeypatch.delenv("KAFKA_MESSAGE_TIMEOUT_MS")
        simulate(kafka, 101, 201)
        compared = await_archived(folder, kafka, 200)
    assert (failures, [one for one in compared if not one.same]) == ([], [])
    assert happened == ["store", "kafka"]
    accounts = [one for one in read_accounts(kafka) if one.stage == "archive"]
    assert (discrepancies(accounts), sum(one.delivered for one in accounts)) == ([], 200)


def test_a_topic_that_was_made_anew_is_said_and_not_passed_over(
    site: tuple[str, str], tmp_path: Path, simulate: Callable[[str, int, int], None]
) -> None:
    """Its offsets began again: below those that are archived nothing would be kept."""
    kafka, registry = site
    folder = tmp_path / "archive"
    simulate(kafka, 1, 20)
    put(writer(folder), *(packet(99, partition=number) for number in range(64)))
    with serving(folder, kafka, registry, "--port", str(free_port())) as child:
        assert child.wait(60) == 1
    assert "the archive has it up to 100" in (tmp_path / "log").read_text()
