"""Owners and brokers get what is theirs, and nothing else: attempt by attempt, against Kafka
itself.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from nightwire.core.access.kafka_admin import _all_of, _binding
from nightwire.core.access.may_read import may_read
from nightwire.core.access.rights import Grant, Operation
from nightwire.core.cli import main
from nightwire.core.kafka import Writer, admin, ensure_topics, producer, read_to_end
from nightwire.core.stack.kafka.auth import SUPER_USER
from nightwire.filters.admission import SourceChecker
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.schemas.topics import settings
from tests._guarded_broker import Guarded, Keys, guarded_broker, keys_of, read, speaking_as, write

pytestmark = pytest.mark.kafka

SECRETS = {"ann": "ann's own password", "bob": "bob's own password", "fink": "fink's own password"}
DENIED = {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}
HOUSE = ["visits", "filters", "accounts", "dead-letters", "alerts.sim", "alerts.lsst"]
OUTPUT = ["filter.ann.bright", "overflow.ann.bright", "filter.bob.faint", "broker.fink.sim"]
FILLED = [*HOUSE, *OUTPUT, "answers.ann", "answers.bob", "seen.ann"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Yield a Kafka with two owners and a broker, and something in every topic that only the
    stack fills.
    """
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        for verb, *words in (
            ("user", "add", "ann", "--quota", "1MB"),
            ("user", "add", "bob", "--quota", "0B"),
            ("broker", "add", "fink", "--survey", "sim", "--quota", "0B"),
        ):
            done = one.run(verb, *words, password=SECRETS[words[1]])
            assert done.exit_code == 0, done.output
        with speaking_as(one.keys):
            ensure_topics(one.bootstrap, [settings(name) for name in (*HOUSE, *OUTPUT)])
            writer = Writer(producer(one.bootstrap))
            for topic in FILLED:
                writer.write(topic, b"something", key=b"key")
            writer.flush()
        yield one


def client(guarded: Guarded, name: str, **more: Any) -> dict[str, Any]:
    return guarded.client(keys_of(name, SECRETS[name]), group_id=f"{name}.tests", **more)


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("ann", "filter.ann.bright"),
        ("ann", "overflow.ann.bright"),
        ("ann", "answers.ann"),
        ("ann", "seen.ann"),
        ("ann", "alerts.sim"),
        ("ann", "filters"),
        ("bob", "filter.bob.faint"),
        ("fink", "alerts.sim"),
        ("fink", "broker.fink.sim"),
    ],
)
def test_everybody_reads_what_is_theirs(guarded: Guarded, name: str, topic: str) -> None:
    assert read(client(guarded, name), topic) == b"something"
    with speaking_as(guarded.keys):
        assert may_read(guarded.bootstrap, name, topic)


@pytest.mark.parametrize(("name", "topic"), [("ann", "requests.ann"), ("fink", "returns.fink")])
def test_everybody_writes_where_they_are_asked_to(guarded: Guarded, name: str, topic: str) -> None:
    assert write(client(guarded, name), topic, b"mine") is None
    assert read(client(guarded, name), topic) == b"mine"


def test_everybody_joins_groups_of_their_own(guarded: Guarded) -> None:
    assert read(client(guarded, "ann") | {"group.id": "ann.archive"}, "filter.ann.bright") == b"something"


@pytest.mark.parametrize("name", ["ann", "fink"])
def test_our_own_readers_need_no_group(guarded: Guarded, name: str) -> None:
    with speaking_as(keys_of(name, SECRETS[name])):
        (message,) = read_to_end(guarded.bootstrap, ["alerts.sim"])
    assert message.value() == b"something"


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("bob", "filter.ann.bright"),
        ("bob", "overflow.ann.bright"),
        ("bob", "answers.ann"),
        ("bob", "seen.ann"),
        ("bob", "requests.ann"),
        ("bob", "broker.fink.sim"),
        ("bob", "returns.fink"),
        ("bob", "dead-letters"),
        ("fink", "filter.ann.bright"),
        ("fink", "alerts.lsst"),
        ("fink", "filters"),
    ],
)
def test_nobody_reads_what_is_not_theirs(guarded: Guarded, name: str, topic: str) -> None:
    found = read(client(guarded, name), topic)
    assert isinstance(found, KafkaError)
    assert found.code() in DENIED
    with speaking_as(guarded.keys):
        assert not may_read(guarded.bootstrap, name, topic)


@pytest.mark.parametrize(
    ("name", "words", "topic"),
    [
        ("fink", "filter list", "filters"),
        ("fink", "filter show bright", "filters"),
        ("fink", "accounts", "accounts"),
        ("fink", "dead-letters list", "dead-letters"),
        ("fink", "dead-letters show 0", "dead-letters"),
        ("bob", "dead-letters list", "dead-letters"),
        ("fink", "subscribe alerts.lsst --no-follow", "alerts.lsst"),
        ("fink", "filter test --sql snr>5 --survey lsst", "alerts.lsst"),
        ("bob", "filter overflow bright --owner ann", "overflow.ann.bright"),
    ],
)
def test_a_verb_says_which_right_is_missing(guarded: Guarded, name: str, words: str, topic: str) -> None:
    with speaking_as(keys_of(name, SECRETS[name])):
        done = CliRunner().invoke(main, [*words.split(), "--bootstrap", guarded.bootstrap])
    assert done.exit_code == 1
    assert f"no right to read {topic};" in " ".join(done.output.split())


def test_a_filter_reads_what_its_owner_may_read(guarded: Guarded) -> None:
    shared = LiveFilter("bob", "red", 1, "*", "", "keep", sources=("filter.ann.shared",))
    own = LiveFilter("bob", "red", 1, "*", "", "keep", sources=("filter.bob.faint", "alerts.sim"))
    with speaking_as(guarded.keys):
        ensure_topics(guarded.bootstrap, [settings("filter.ann.shared")])
        sources = SourceChecker(guarded.bootstrap)
        assert sources.refusals(own, []) == []
        (refusal,) = sources.refusals(shared, [])
        assert refusal.startswith("bob may not read filter.ann.shared: ask ann")
        operator = admin(guarded.bootstrap)
        rights = operator.create_acls([_binding("bob", Grant("filter.ann.shared", Operation.READ))])
        (given,) = rights.values()
        given.result(30)
        assert sources.refusals(shared, []) == []
        # others look at what bob sees
        for future in operator.delete_topics(["filter.ann.shared"]).values():
            future.result(30)


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("bob", "requests.ann"),
        ("bob", "answers.ann"),
        ("bob", "answers.bob"),
        ("bob", "seen.bob"),
        ("bob", "filter.ann.bright"),
        ("bob", "filter.bob.faint"),
        ("bob", "filters"),
        ("bob", "alerts.sim"),
        ("bob", "visits"),
        ("bob", "accounts"),
        ("bob", "returns.fink"),
        ("bob", "requests.fink"),
        ("fink", "requests.ann"),
        ("fink", "broker.fink.sim"),
        ("fink", "filters"),
        ("ann", "a-topic-of-her-own"),
    ],
)
def test_nobody_writes_where_only_others_may(guarded: Guarded, name: str, topic: str) -> None:
    refused = write(client(guarded, name), topic)
    assert refused is not None
    assert refused.code() in DENIED


@pytest.mark.parametrize("group", ["ann.archive", "nightwire-filters-requests", "bobby.x", "bob"])
def test_nobody_joins_another_group(guarded: Guarded, group: str) -> None:
    refused = read(client(guarded, "bob") | {"group.id": group}, "filter.bob.faint")
    assert isinstance(refused, KafkaError)
    assert refused.code() == KafkaError.GROUP_AUTHORIZATION_FAILED


def test_nobody_sees_the_topics_of_others(guarded: Guarded) -> None:
    seen = set(AdminClient(client(guarded, "bob")).list_topics(timeout=60).topics)
    assert {"filter.bob.faint", "requests.bob", "answers.bob", "alerts.sim"} <= seen
    others = [name for name in seen if "ann" in name or "fink" in name]
    assert others == ["comments.ann"]  # what owners say of filters is for all owners


def _more_rights(admin: AdminClient) -> Any:
    return admin.create_acls([_binding("bob", Grant("filters", Operation.WRITE))])


def _fewer_rights_for_ann(admin: AdminClient) -> Any:
    return admin.delete_acls([_all_of("ann")])


def _another_password_for_ann(admin: AdminClient) -> Any:
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    return admin.alter_user_scram_credentials([UserScramCredentialUpsertion("ann", info, b"bob's now")])


def _longer_retention(admin: AdminClient) -> Any:
    entry = ConfigEntry("retention.ms", "-1", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, "filter.bob.faint", incremental_configs=[entry])
    return admin.incremental_alter_configs([topic])


ATTEMPTS: list[Callable[[AdminClient], Any]] = [
    _more_rights,
    _fewer_rights_for_ann,
    _another_password_for_ann,
    _longer_retention,
    lambda admin: admin.create_topics([NewTopic("filter.bob.more", 1)]),
    lambda admin: admin.delete_topics(["requests.bob"]),
    lambda admin: admin.delete_topics(["filters"]),
    lambda admin: admin.create_partitions([NewPartitions("requests.bob", 9)]),
]


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_nobody_administers(guarded: Guarded, attempt: Callable[[AdminClient], Any]) -> None:
    admin = AdminClient(client(guarded, "bob"))
    (answer,) = attempt(admin).values()
    with pytest.raises(KafkaException) as refused:
        answer.result(60)
    assert refused.value.args[0].code() in DENIED


@pytest.mark.parametrize(
    ("verb", "words"), [("user", ["list"]), ("user", ["add", "bob"]), ("broker", ["list"])]
)
def test_the_verbs_are_the_operators_alone(guarded: Guarded, verb: str, words: list[str]) -> None:
    """Asked by others, librdkafka says that there are no rights, or takes the process down: we
    ask first.
    """
    refused = Guarded(guarded.bootstrap, keys_of("bob", SECRETS["bob"])).run(verb, *words)
    assert refused.exit_code == 1
    assert "authorization failed; that is for the operator to do" in refused.output


@pytest.mark.parametrize(
    "keys",
    [
        keys_of("bob", "a guess"),
        keys_of("nobody", SECRETS["bob"]),
        keys_of(SUPER_USER, "a guess"),
        keys_of("bob", SECRETS["bob"]) | {"sasl.mechanism": "PLAIN"},
        keys_of(SUPER_USER, "a guess") | {"sasl.mechanism": "PLAIN"},
        {},
    ],
    ids=["wrong password", "no such user", "the stack", "another mechanism", "the stack by PLAIN", "nothing"],
)
def test_nobody_enters_without_their_password(guarded: Guarded, keys: Keys) -> None:
    with pytest.raises(KafkaException):
        AdminClient(guarded.client(keys)).list_topics(timeout=1)


def test_who_writes_more_than_the_quota_is_slowed_down(guarded: Guarded) -> None:
    slowed: list[float] = []
    heard = {"throttle_cb": lambda event: slowed.append(event.throttle_time)}
    writer = Producer(client(guarded, "ann") | heard)
    for _ in range(30):
        writer.produce("requests.ann", bytes(500_000))
    while not slowed and writer.flush(0.1):
        pass
    writer.purge()
    assert slowed
    assert slowed[0] > 0


def test_who_is_removed_is_refused_at_once(guarded: Guarded) -> None:
    keys = keys_of("cleo", "cleo's own password")
    quota = ("--quota", "0B")
    assert guarded.run("user", "add", "cleo", *quota, password=keys["sasl.password"]).exit_code == 0
    inside = Consumer(guarded.client(keys, group_id="cleo.tests", auto_offset_reset="earliest"))
    inside.subscribe(["alerts.sim"])
    first = inside.poll(30)
    assert first is not None
    assert first.value() == b"something"
    assert guarded.run("user", "remove", "cleo").exit_code == 0
    verdict = inside.poll(30)
    assert verdict is not None
    refused = verdict.error()
    assert refused is not None
    assert refused.code() in {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
    inside.close()
    with pytest.raises(KafkaException):
        AdminClient(guarded.client(keys)).list_topics(timeout=1)


PAGE = (Path(__file__).parents[1] / "docs" / "user" / "owners.md").read_text()
COMMANDS = re.findall(r"^    nightwire (user|broker) (.*?)(?: >.*)?$", PAGE, re.MULTILINE)
OTHER = {"ann": "dora", "fink": "lasair"}


def test_the_operators_page_runs_as_it_is_written(guarded: Guarded) -> None:
    said = []
    for verb, words in COMMANDS:
        named = [OTHER.get(word, word) for word in words.split()]
        done = guarded.run(verb, *named)
        assert done.exit_code == 0, f"nightwire {verb} {' '.join(named)}: {done.output}"
        said.append(done.output)
    dry, added, listed, renewed, removed = said[:5]
    assert "nothing was changed" in dry
    passwords = re.findall(r"KAFKA_SASL_PASSWORD=(\S+)", added + renewed)
    assert len(set(passwords)) == 2
    assert re.search(r"dora .*20MB/s", listed)
    assert "remove password" in removed


def test_what_is_as_it_should_be_is_left_alone(guarded: Guarded) -> None:
    again = guarded.run("user", "add", "bob", "--json")
    assert json.loads(again.stdout)["steps"] == []
    assert "bob is an owner already" in guarded.run("broker", "add", "bob", "--survey", "sim").output
    assert "there is no owner nobody" in guarded.run("user", "remove", "nobody").output
    assert read(client(guarded, "bob"), "answers.bob") == b"something"


def test_a_kafka_that_believes_everybody_is_told_of(kafka: str) -> None:
    done = Guarded(kafka, {}).run("user", "add", "ann")
    assert done.exit_code == 1
    assert "nightwire up --auth scram" in done.output
    assert may_read(kafka, "ann", "filter.bob.faint")
