"""`nightwire ingest` between two real Kafkas, of which the survey's asks who is there."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from nightwire.core.accounting import discrepancies
from nightwire.core.stack import free_port
from nightwire.schemas import AlertDecoder, SchemaRegistry
from nightwire.schemas.wire import is_container, read_container, unframe
from producer.tests.ingest.survey_kafka import (
    ID,
    Ingest,
    SurveyKafka,
    container,
    headers_of,
    lsst_schema,
    place,
    wire,
)
from tests._secure_broker import SecureBroker, secure_broker
from tests._waiting import until

pytestmark = pytest.mark.kafka

ServeRegistry = Callable[..., AbstractContextManager[str]]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Yield the survey's Kafka."""
    with secure_broker(tmp_path_factory.mktemp("source")) as one:
        yield one


def register(url: str, folder: Path, minor: int) -> None:
    """Tell the registry at *url* of version 99.*minor*."""
    with SchemaRegistry(url, cache_dir=folder / "survey") as registry:
        registry.register("alerts-value", lsst_schema(minor), schema_id=ID + minor)


@pytest.fixture(scope="module")
def source_registry(
    secure: SecureBroker, serve_registry: ServeRegistry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the URL of the survey's registry, which has version 99.0."""
    with serve_registry(secure.plain) as url:
        register(url, tmp_path_factory.mktemp("registry"), 0)
        yield url


@pytest.fixture
def survey(secure: SecureBroker) -> SurveyKafka:
    """Return the survey's own way in."""
    return SurveyKafka(secure.plain)


@pytest.fixture
def topic(survey: SurveyKafka) -> str:
    """Return a topic of this test's own at the survey, of two partitions."""
    name = f"alerts-{os.urandom(3).hex()}"
    survey.make(name)
    return name


Mirroring = Callable[..., Ingest]


@pytest.fixture
def mirroring(secure: SecureBroker, kafka: str, registry_url: str, tmp_path: Path) -> Mirroring:
    """Return a function that says how a survey is mirrored, by default with a password."""

    def how(survey: str, *words: str, listener: str = "scram") -> Ingest:
        name = f"source-{os.urandom(3).hex()}"
        client = getattr(secure, f"{listener}_client")
        return Ingest(survey, name, getattr(secure, listener), kafka, registry_url, tmp_path, client, words)

    return how


@pytest.fixture
def lsst(mirroring: Mirroring, source_registry: str, topic: str) -> Ingest:
    """Return how a stream in wire format is mirrored."""
    return mirroring("lsst", "--source-registry", source_registry, "--topic", topic)


def test_wire_format_comes_over_unchanged_with_key_headers_and_visit(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    sent = [(wire(n, 700 + n // 51), n % 2) for n in range(1, 101)]
    survey.send(topic, sent, headers=[("topic", b"theirs"), ("_id", b"kept")])
    status, counts, log = lsst.to_the_end()
    assert (status, counts["read"], counts["delivered"]) == (0, 100, 100), log
    found = lsst.mirrored()
    assert sorted(message.value() or b"" for message in found) == sorted(value for value, _ in sent)
    assert {place(message) for message in found} == {
        (topic, part, offset) for part in (0, 1) for offset in range(50)
    }
    with SchemaRegistry(lsst.registry, cache_dir=lsst.folder / "fresh") as ours:
        decoder = AlertDecoder(ours)
        assert ours.latest("alerts.lsst-value")[1] == ID
        for message in found:
            source, said = decoder.decode(message.value() or b"").alert["diaSource"], headers_of(message)
            assert message.key() == str(source["diaObjectId"]).encode()
            assert said["visit"] == str(source["visit"]).encode()
            assert (said["survey-topic"], said["_id"], "topic" in said) == (b"theirs", b"kept", False)
    for number in (700, 701):
        record = lsst.visits()[number]
        assert (record["written"], record["estimated"], record["closed"] is None) == (50, True, False)
    assert discrepancies(lsst.accounts()) == []
    assert [(one.first, one.last, one.delivered) for one in lsst.accounts()] == [(0, 49, 50), (0, 49, 50)]
    assert lsst.client["sasl.password"] not in log


def test_a_second_run_goes_on_where_the_first_ended_and_a_late_alert_is_counted_with_its_visit(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    survey.send(topic, [(wire(n, 710), 0) for n in range(1, 11)])
    assert lsst.to_the_end()[0] == 0
    first = lsst.visits()[710]
    survey.send(topic, [(wire(11, 710), 0), (wire(12, 711), 1)])
    status, counts, log = lsst.to_the_end("--start", "live")
    assert (status, counts["delivered"]) == (0, 2), log
    again = lsst.visits()[710]
    assert (first["written"], again["written"], again["closed"] > first["closed"]) == (10, 11, True)
    assert [(one.first, one.last, one.read) for one in lsst.accounts()] == [(0, 10, 11), (0, 0, 1)]
    assert len(lsst.mirrored()) == 12


@pytest.mark.parametrize("listener", ["oauth", "tls"])
def test_tokens_and_tls_let_us_in(
    mirroring: Mirroring, survey: SurveyKafka, topic: str, source_registry: str, listener: str
) -> None:
    words = ["--source-registry", source_registry, "--topic", topic]
    survey.send(topic, [(wire(n, 720), 0) for n in range(1, 6)])
    one = mirroring("lsst", *words, listener=listener)
    status, counts, log = one.to_the_end()
    assert (status, counts["delivered"]) == (0, 5), log
    secret = next(value for name, value in one.client.items() if name.endswith(("password", "secret")))
    assert secret not in log


def test_a_wrong_password_is_told_from_an_empty_stream_and_not_repeated(lsst: Ingest) -> None:
    lsst.client = {**lsst.client, "sasl.password": "a wrong one"}
    status, _counts, log = lsst.to_the_end()
    assert status == 1
    assert "a wrong one" not in log


def test_containers_become_wire_format_one_alert_each_and_nights_are_found(
    mirroring: Mirroring, survey: SurveyKafka
) -> None:
    night, later = "ztf_20260301_programid1", "ztf_20260302_programid1"
    survey.make(night)
    survey.make("ztf_20260301_programid2")
    many, empty = container([3, 4, 5], 31), container([], 31)
    survey.send(night, [(container([1], 31), 0), (container([2], 31), 1), (many, 0), (empty, 1)])
    survey.send("ztf_20260301_programid2", [(container([99], 31), 0)])
    ztf = mirroring("ztf", "--topic-pattern", "ztf_{date}_programid1")
    with ztf.running() as one:
        until(lambda: len(ztf.mirrored()) == 5, one.said)
        survey.make(later)
        survey.send(later, [(container([6], 32), 0), (b"no alert", 0)])
        until(lambda: len(ztf.dead_letters()) == 1, one.said)
        assert one.stop() == 0
    found = ztf.mirrored()
    with SchemaRegistry(ztf.registry, cache_dir=ztf.folder / "fresh") as ours:
        decoder = AlertDecoder(ours)
        alerts = {message.value(): decoder.decode(message.value() or b"") for message in found}
        assert sorted(one.alert["candid"] for one in alerts.values()) == [1, 2, 3, 4, 5, 6]
        assert {one.schema_id for one in alerts.values()} == {ours.latest("alerts.ztf-value")[1]}
    assert {one.body for one in alerts.values()} == {
        inner.body for n in range(1, 7) for inner in read_container(container([n], 31 + n // 6))
    }
    (dead_letter,) = ztf.dead_letters()
    said = headers_of(dead_letter)
    assert (dead_letter.value(), said["stage"]) == (b"no alert", b"ingest")
    assert said["source"].decode().endswith(f"{later}[0]@1")
    assert discrepancies(ztf.accounts()) == []
    total = {
        name: sum(getattr(one, name) for one in ztf.accounts())
        for name in ("read", "delivered", "dead_lettered")
    }
    assert total == {"read": 6, "delivered": 4, "dead_lettered": 1}
    assert sum(one.rejected.get("empty-container", 0) for one in ztf.accounts()) == 1


def test_as_is_keeps_whole_messages(mirroring: Mirroring, survey: SurveyKafka, topic: str) -> None:
    sent = [container([1], 33), container([2], 33)]
    survey.send(topic, [(value, 0) for value in [*sent, container([3, 4], 33)]])
    ztf = mirroring("ztf", "--topic", topic, "--format", "as-is")
    status, counts, log = ztf.to_the_end()
    assert (status, counts["delivered"], counts["dead_lettered"]) == (1, 2, 1), log
    found = ztf.mirrored()
    assert sorted(message.value() or b"" for message in found) == sorted(sent)
    assert all(is_container(message.value() or b"") for message in found)
    assert {message.key() for message in found} == {b"ZTF1", b"ZTF2"}


def test_a_schema_that_appears_in_mid_night_is_fetched_and_one_that_is_known_needs_no_registry(
    mirroring: Mirroring,
    survey: SurveyKafka,
    topic: str,
    secure: SecureBroker,
    serve_registry: ServeRegistry,
    tmp_path: Path,
) -> None:
    port = free_port()
    with ExitStack() as night:
        url = night.enter_context(serve_registry(secure.plain, port))
        one = mirroring("lsst", "--source-registry", url, "--topic", topic)
        register(url, tmp_path, 0)
        running = night.enter_context(one.running())
        survey.send(topic, [(wire(1, 730), 0), (wire(2, 730, minor=7), 0), (wire(3, 730), 0)])
        until(lambda: "waiting: " in running.said(), running.said)
        assert len(one.mirrored()) == 1
        register(url, tmp_path, 7)
        until(lambda: len(one.mirrored()) == 3, running.said)
        assert running.stop() == 0
    survey.send(topic, [(wire(4, 730, minor=7), 1)])
    status, counts, log = one.to_the_end()
    assert (status, counts["delivered"]) == (0, 1), log
    assert sorted(unframe(message.value() or b"")[0] for message in one.mirrored()) == [
        ID,
        ID,
        ID + 7,
        ID + 7,
    ]
    with SchemaRegistry(one.registry, cache_dir=tmp_path / "fresh") as ours:
        assert ours.schema(ID + 7)["namespace"] == "lsst.v99_7"


def test_alerts_of_a_schema_that_never_appears_are_dead_letters_by_name(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    survey.send(topic, [(wire(1, 740), 0), (wire(2, 740, minor=9), 0), (wire(3, 740), 0)])
    status, counts, log = lsst.to_the_end("--schema-patience", "1s")
    assert (status, counts["delivered"], counts["dead_lettered"]) == (1, 2, 1), log
    (dead_letter,) = lsst.dead_letters()
    assert dead_letter.value() == wire(2, 740, minor=9)
    assert b"9909" in headers_of(dead_letter)["reason"]


def test_what_the_survey_deleted_before_we_read_it_is_counted_as_expired(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    survey.send(topic, [(wire(n, 750), 0) for n in range(1, 11)])
    assert lsst.to_the_end()[0] == 0
    survey.send(topic, [(wire(n, 750), 0) for n in range(11, 21)])
    client = AdminClient({"bootstrap.servers": survey.address})
    for done in client.delete_records([TopicPartition(topic, 0, 15)]).values():
        done.result(30)
    status, counts, log = lsst.to_the_end()
    assert (status, counts["delivered"], counts["rejected"]) == (0, 5, {"expired": 5}), log
    assert "5 records expired" in log
    account = next(one for one in lsst.accounts() if one.partition == 0)
    assert (account.first, account.last, account.read, account.delivered) == (0, 19, 20, 15)
    assert discrepancies(lsst.accounts()) == []


def test_one_alert_that_our_kafka_refuses_is_a_dead_letter_and_the_others_are_not(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    sent = [(wire(n, 760, pad=os.urandom(60_000 if n == 7 else 10)), 0) for n in range(1, 21)]
    survey.send(topic, sent)
    with limited(lsst.kafka, "alerts.lsst", 50_000):
        status, counts, log = lsst.to_the_end()
    assert (status, counts["delivered"], counts["dead_lettered"]) == (1, 19, 1), log
    (dead_letter,) = lsst.dead_letters()
    assert dead_letter.value() == sent[6][0]
    assert lsst.visits()[760]["written"] == 19
    assert discrepancies(lsst.accounts()) == []


@contextmanager
def limited(kafka: str, name: str, limit: int) -> Iterator[None]:
    """Let *name* take no records above *limit* [byte] meanwhile."""
    client = AdminClient({"bootstrap.servers": kafka})

    def set_(value: int) -> None:
        entry = ConfigEntry("max.message.bytes", str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        for done in client.incremental_alter_configs([resource]).values():
            done.result(30)

    set_(limit)
    try:
        yield
    finally:
        set_(4 << 20)


def test_live_begins_at_the_end_and_a_second_process_ends_the_first(
    lsst: Ingest, survey: SurveyKafka, topic: str
) -> None:
    survey.send(topic, [(wire(n, 770), 0) for n in range(1, 6)])
    with lsst.running("--start", "live") as first:
        until(lambda: len(lsst.accounts()) == 2, first.said)
        survey.send(topic, [(wire(6, 770), 0)])
        until(lambda: len(lsst.mirrored()) == 1, first.said)
        with lsst.running() as second:
            until(lambda: "reading" in second.said(), second.said)
            survey.send(topic, [(wire(7, 770), 0)])
            until(lambda: first.process.poll() is not None, first.said)
            until(lambda: len(lsst.mirrored()) == 2, second.said)
            assert second.stop() == 0
        assert first.process.returncode == 1
        assert "has taken over" in first.said()
    assert [(one.first, one.last, one.read) for one in lsst.accounts()] == [(5, 6, 2), (0, -1, 0)]
