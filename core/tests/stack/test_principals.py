"""Each process of the stack may do what it has to, and nothing beside, in Kafka's own words."""

import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, NewTopic

from nightwire.core.stack import Broker, free_port
from nightwire.core.stack.kafka.auth import listener_properties, operator_credentials
from nightwire.core.stack.kafka.principals import RIGHTS, let_in, new_passwords, principal_of
from nightwire.schemas.kafka_environment import properties

pytestmark = pytest.mark.kafka

TOPICS = [
    "_schemas",
    "accounts",
    "alerts.sim",
    "answers.ann",
    "broker.fink.lite",
    "comments.ann",
    "dead-letters",
    "directory",
    "filter.ann.mine",
    "filters",
    "flow-state.some",
    "flow.some.hook",
    "flows",
    "flow-problems",
    "owed",
    "overflow.ann.mine",
    "requests.ann",
    "returns.fink",
    "seen.ann",
    "visits",
    "voevents",
    "vtp-positions",
]
READS = {
    "schema_registry": "_schemas",
    "directory": "directory filters flow-problems flows owed",
    "gateway": "accounts alerts.sim broker.fink.lite filter.ann.mine voevents vtp-positions",
    "filters": "accounts alerts.sim answers.ann broker.fink.lite filter.ann.mine filters overflow.ann.mine "
    "requests.ann seen.ann visits",
    "portal": "accounts alerts.sim comments.ann dead-letters directory filter.ann.mine filters "
    "returns.fink seen.ann voevents",
    "users": "",
    "exporter": "accounts",
    "archive": "accounts alerts.sim",
    "flows": "accounts alerts.sim broker.fink.lite filter.ann.mine flow-problems flow-state.some "
    "flow.some.hook flows returns.fink voevents",
    "stream": "accounts alerts.sim visits",
}
WRITES = {
    "schema_registry": "_schemas",
    "directory": "directory flows owed",
    "gateway": "accounts dead-letters directory voevents vtp-positions",
    "filters": "accounts answers.ann broker.fink.lite dead-letters directory filter.ann.mine filters "
    "overflow.ann.mine seen.ann visits",
    "portal": "directory",
    "users": "directory",
    "exporter": "directory",
    "archive": "accounts dead-letters directory",
    "flows": "accounts broker.fink.lite dead-letters directory flow-problems flow-state.some flow.some.hook",
    "stream": "accounts alerts.sim dead-letters directory visits",
}

Operations = set[AclOperation]


class Stack:
    """A Kafka that asks who is there, and the processes that were let in."""

    def __init__(self, folder: Path) -> None:
        password = secrets.token_urlsafe()
        self.broker = Broker(
            folder, port=free_port(), controller=free_port(), properties=listener_properties(password)
        )
        self.broker.start()
        operator = AdminClient(operator_credentials(password) | {"bootstrap.servers": self.broker.bootstrap})
        for done in operator.create_topics([NewTopic(name, 1) for name in TOPICS]).values():
            done.result(60)
        self.given = let_in(operator, new_passwords())

    def client(self, process: str, **other: str) -> AdminClient:
        """Return a client with the environment of *process*, but for what is *other*."""
        known = {"KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT", **self.given[process], **other}
        return AdminClient(properties(known) | {"bootstrap.servers": self.broker.bootstrap, "log_level": 0})

    def rights(self, process: str) -> Mapping[str, Operations]:
        """Return what Kafka says that *process* may do with each topic."""
        client = self.client(process)  # kept until there is an answer
        asked = client.describe_topics(
            TopicCollection(TOPICS), include_authorized_operations=True, request_timeout=60
        )
        found: dict[str, Operations] = {}
        for name, future in asked.items():
            try:
                found[name] = set(future.result(60).authorized_operations)
            except KafkaException:
                found[name] = set()
        return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    one = Stack(tmp_path_factory.mktemp("principals"))
    yield one
    one.broker.stop()


@pytest.mark.parametrize("process", RIGHTS)
def test_each_process_reads_and_writes_what_is_its_own(stack: Stack, process: str) -> None:
    rights = stack.rights(process)
    for operation, expected in ((AclOperation.READ, READS), (AclOperation.WRITE, WRITES)):
        assert {name for name, known in rights.items() if operation in known} == set(
            expected[process].split()
        )
    harmful = {AclOperation.ALTER, AclOperation.DELETE, AclOperation.ALTER_CONFIGS}
    harmed = [name for name, known in rights.items() if known & harmful]
    assert harmed == (["flow.some.hook"] if process == "flows" else [])


@pytest.mark.parametrize("process", RIGHTS)
def test_no_process_makes_any_topic_and_only_the_one_for_passwords_changes_users(
    stack: Stack, process: str
) -> None:
    client = stack.client(process)
    found = client.describe_cluster(include_authorized_operations=True, request_timeout=60).result(60)
    allowed = set(found.authorized_operations or ())
    sees = {AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS}
    expected = {"filters": sees, "flows": sees, "users": {AclOperation.DESCRIBE, AclOperation.ALTER}}
    assert allowed == expected.get(process, set())
    with pytest.raises(KafkaException, match="uthoriz"):
        client.create_topics([NewTopic("anything", 1)])["anything"].result(60)


def test_passwords_are_others_at_each_start_and_of_no_use_to_another(stack: Stack) -> None:
    passwords = {given["KAFKA_SASL_PASSWORD"] for given in stack.given.values()}
    assert len(passwords) == len(RIGHTS)
    mistaken = stack.client("gateway", KAFKA_SASL_USERNAME=principal_of("filters"))
    with pytest.raises(KafkaException):
        mistaken.list_topics(timeout=3)
