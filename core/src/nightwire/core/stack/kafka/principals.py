"""The stack's processes as users of Kafka, each with the least rights that it works with.

Embedded, their passwords are made anew at each start and live in their environment alone; compose's
lie in its ``.env``.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from nightwire.core.kafka import environment
from nightwire.schemas.topics import (
    ACCOUNTS,
    CHANNELS,
    DEAD_LETTERS,
    DIRECTORY,
    FILTERS,
    FLOW_PROBLEMS,
    FLOWS,
    OWED,
    SCHEMAS,
    SUBSCRIPTIONS,
    VISITS,
    VOEVENTS,
    VTP_POSITIONS,
)

TIMEOUT = 30.0
"""Longest wait for an answer. [s]"""
ITERATIONS = 4096
"""Iterations of SCRAM, Kafka's least: passwords that we make are too long to be guessed."""

READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
ALTER = AclOperation.ALTER
TOPIC, GROUP, CLUSTER = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.BROKER
TRANSACTION = ResourceType.TRANSACTIONAL_ID
KAFKA = "kafka-cluster"
"""What Kafka calls itself as a thing that one may have rights to."""

Right = tuple[ResourceType, str, Sequence[AclOperation]]
"""A kind of thing, its name (with ``*`` at its end: all that begin so), and what may be done."""


def _topics(operations: Sequence[AclOperation], *names: str) -> list[Right]:
    return [(TOPIC, name, operations) for name in names]


KEEPS, APPENDS = (READ, WRITE, CREATE), (WRITE, CREATE)
RIGHTS: Mapping[str, Sequence[Right]] = {
    "schema_registry": [*_topics(KEEPS, SCHEMAS), (GROUP, "nightwire-schemas", [READ])],
    "gateway": [
        *_topics(KEEPS, VOEVENTS, ACCOUNTS, VTP_POSITIONS),
        *_topics(APPENDS, DEAD_LETTERS, DIRECTORY),
        *_topics([READ], "alerts.*", "filter.*", "broker.*", CHANNELS),
        *_topics(APPENDS, "channel.voevents.*"),
    ],
    "filters": [
        *_topics(
            KEEPS, FILTERS, ACCOUNTS, VISITS, "filter.*", "broker.*", "overflow.*", "answers.*", "seen.*"
        ),
        *_topics(APPENDS, DEAD_LETTERS, DIRECTORY, SUBSCRIPTIONS),
        *_topics([READ], "alerts.*", "requests.*"),
        (GROUP, "nightwire-filters-requests", [READ]),
        (CLUSTER, KAFKA, [DESCRIBE, DESCRIBE_CONFIGS]),  # who may read what
    ],
    "directory": [
        *_topics(KEEPS, DIRECTORY, SUBSCRIPTIONS, FLOWS, OWED),
        *_topics([READ], FILTERS, FLOW_PROBLEMS),
        *_topics([DESCRIBE], "*"),
        (GROUP, "*", [DESCRIBE]),
        (TRANSACTION, f"{OWED}-*", [WRITE]),
    ],
    "portal": [
        *_topics(
            [READ],
            "alerts.*",
            "filter.*",
            "returns.*",
            "seen.*",
            "comments.*",
            FILTERS,
            VOEVENTS,
            ACCOUNTS,
            DEAD_LETTERS,
        ),
        *_topics(KEEPS, DIRECTORY),
    ],
    "users": [
        *_topics(APPENDS, DIRECTORY),
        (CLUSTER, KAFKA, [DESCRIBE, ALTER]),  # passwords are changed by whoever may alter all
    ],
    "exporter": [
        *_topics([READ], ACCOUNTS),
        *_topics(APPENDS, DIRECTORY),
        *_topics([DESCRIBE], "*"),
        (GROUP, "*", [DESCRIBE]),
    ],
    "archive": [
        *_topics(KEEPS, ACCOUNTS),
        *_topics(APPENDS, DEAD_LETTERS, DIRECTORY),
        *_topics([READ], "alerts.*"),
        (GROUP, "nightwire-archive", [READ]),
    ],
    "flows": [
        *_topics(KEEPS, ACCOUNTS, FLOW_PROBLEMS, "flow-state.*", "broker.*"),
        *_topics((*KEEPS, AclOperation.DELETE), "flow.*"),  # queues of stones that are no more
        *_topics(APPENDS, DEAD_LETTERS, DIRECTORY),
        *_topics([READ], FLOWS, "alerts.*", "filter.*", "returns.*", VOEVENTS),
        (GROUP, "flow.*", [READ]),
        (TRANSACTION, "flow-*", [WRITE]),
        (CLUSTER, KAFKA, [DESCRIBE, DESCRIBE_CONFIGS]),  # who may read and write what
    ],
    "stream": [
        *_topics(KEEPS, VISITS, ACCOUNTS, "alerts.*"),
        *_topics(APPENDS, DEAD_LETTERS, DIRECTORY, "channel.*"),
        *_topics([READ], CHANNELS),
    ],
}
"""What each process may do, beside joining groups that begin with its own name."""


def principal_of(process: str) -> str:
    """Return the user name of *process*; names of owners and brokers have no dots."""
    return f"nightwire.{process.replace('_', '-')}"


def bindings(process: str) -> Iterator[AclBinding]:
    """Yield the rights of *process*, as Kafka keeps them."""
    user = principal_of(process)
    for kind, name, operations in (*RIGHTS[process], (GROUP, f"{user}.*", [READ])):
        prefixed = name.endswith("*") and name != "*"
        pattern = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
        named = name.removesuffix("*") if prefixed else name
        for operation in operations:
            yield AclBinding(kind, named, pattern, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


def new_passwords() -> dict[str, str]:
    """Return a password for each process that nobody knows yet."""
    return {process: secrets.token_urlsafe(32) for process in RIGHTS}


def given_passwords(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the passwords of processes that ``NIGHTWIRE_PASSWORD_<PROCESS>`` gives."""
    named = {process: f"NIGHTWIRE_PASSWORD_{process.upper()}" for process in RIGHTS}
    return {process: environment[name] for process, name in named.items() if environment.get(name)}


def let_in(kafka: AdminClient, passwords: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Make a user of each process that has a password, with its rights; return the environment of
    each, by process.

    Raises:
        KafkaException: Kafka refuses, or does not answer.
    """
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
    users: list[UserScramCredentialAlteration] = [
        UserScramCredentialUpsertion(principal_of(process), info, password.encode())
        for process, password in passwords.items()
    ]
    rights = [right for process in passwords for right in bindings(process)]
    for future in (
        *kafka.create_acls(rights).values(),
        *kafka.alter_user_scram_credentials(users).values(),
    ):
        future.result(TIMEOUT)
    return {process: _environment(process, password) for process, password in passwords.items()}


def _environment(process: str, password: str) -> dict[str, str]:
    user = {"sasl.username": principal_of(process), "sasl.password": password}
    return environment({"sasl.mechanism": "SCRAM-SHA-512", **user})


NOBODY = environment({"sasl.username": "", "sasl.password": ""})
"""The environment of processes that have nothing to do with Kafka."""
