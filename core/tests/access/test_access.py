"""Who is to have what, and what has to be done for it: decisions, without a Kafka."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nightwire.core.access import passwords, quotas
from nightwire.core.access.changes import AccessPart, NameTakenError, PrincipalState, additions, removals
from nightwire.core.access.kafka_admin import _binding, _grant
from nightwire.core.access.rights import (
    OWNERS_QUOTA,
    Grant,
    Kind,
    Operation,
    Resource,
    Rights,
    broker,
    kind,
    owner,
)
from nightwire.core.access.streams import stream_filters
from nightwire.core.cli.parameter_types import SIZE_UNITS, parse_size, spell_size
from nightwire.core.kafka import environment, identity, properties
from nightwire.core.runtime.credentials import FILE, stack_credentials, write_credentials
from nightwire.core.stack.kafka.auth import SUPER_USER, operator_credentials
from nightwire.schemas.topics import NameError_

ANN = owner("ann")
SETTLED = PrincipalState("ann", password=True, grants=ANN.grants, quota=5, topics=frozenset(ANN.topics))
NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,35}", fullmatch=True)


def allows(rights: Rights, operation: Operation, name: str, resource: Resource = Resource.TOPIC) -> bool:
    """Return whether Kafka would let it, by the names of what is granted."""
    return any(
        (one.operation, one.resource) == (operation, resource)
        and (name.startswith(one.name) if one.prefixed else name == one.name)
        for one in rights.grants
    )


@given(NAMES, NAMES)
@example("ann", "ann")
@example("ann", "anna")
@example("ann", "ann-marie")
def test_nothing_of_an_owner_is_anybody_elses(name: str, other: str) -> None:
    rights, theirs = owner(name), name == other
    for kind_ in ("filter.{}.x", "overflow.{}.x", "answers.{}", "requests.{}", "seen.{}"):
        assert allows(rights, Operation.READ, kind_.format(other)) == theirs
    for kind_ in ("requests.{}", "comments.{}"):
        assert allows(rights, Operation.WRITE, kind_.format(other)) == theirs
    assert allows(rights, Operation.READ, f"comments.{other}")
    assert allows(rights, Operation.READ, f"{other}.archive", Resource.GROUP) == theirs
    assert not allows(rights, Operation.WRITE, "filters")
    assert not allows(rights, Operation.WRITE, f"filter.{other}.x")
    assert allows(rights, Operation.READ, "channel.lsst.bright")
    assert not allows(rights, Operation.READ, "channel.voevents.seen")


@given(NAMES, NAMES)
@example("ann", "ann")
@example("ann", "anna")
@example("ann", "ann-marie")
def test_nothing_of_a_broker_is_anybody_elses(name: str, other: str) -> None:
    rights, theirs = broker(name, ["lsst"]), name == other
    assert allows(rights, Operation.READ, f"broker.{other}.x") == theirs
    assert allows(rights, Operation.WRITE, f"returns.{other}") == theirs
    assert allows(rights, Operation.READ, f"{other}.archive", Resource.GROUP) == theirs
    assert not allows(rights, Operation.READ, "alerts.ztf")


@pytest.mark.parametrize("make", [owner, lambda name: broker(name, ["lsst"])])
@pytest.mark.parametrize("name", ["Ann", "a.b", "", "*", SUPER_USER])
def test_a_name_that_would_reach_further_is_refused(make: Callable[[str], Rights], name: str) -> None:
    with pytest.raises(NameError_):
        make(name)


def test_an_owner_and_a_broker_are_told_apart_and_strangers_are_neither() -> None:
    assert kind("ann", ANN.grants) is Kind.OWNER
    assert kind("fink", broker("fink", []).grants) is Kind.BROKER
    assert kind("bob", ANN.grants) is None
    assert kind("CN=somebody", []) is None


@pytest.mark.parametrize("one", sorted(ANN.grants | broker("fink", ["ztf"]).grants, key=str), ids=str)
def test_a_right_comes_back_from_kafka_as_it_went(one: Grant) -> None:
    assert _grant(_binding("ann", one)) == one


def test_who_has_everything_gets_nothing() -> None:
    assert additions(ANN, SETTLED, quota=None) == []
    assert additions(ANN, SETTLED, quota=5) == []


def test_a_new_owner_gets_everything_and_the_usual_quota() -> None:
    steps = additions(ANN, PrincipalState("ann"), quota=None)
    assert {step.grant for step in steps if step.grant} == ANN.grants
    assert {step.topic for step in steps if step.topic} == set(ANN.topics)
    assert [step.quota for step in steps if step.part is AccessPart.QUOTA] == [OWNERS_QUOTA]
    assert steps[-1].part is AccessPart.PASSWORD


@pytest.mark.parametrize(("asked", "limit"), [(7, 7), (0, None)])
def test_a_quota_that_is_asked_for_displaces_the_old_one(asked: int, limit: int | None) -> None:
    (step,) = additions(ANN, SETTLED, quota=asked)
    assert (step.part, step.quota) == (AccessPart.QUOTA, limit)


def test_where_quotas_are_left_alone_neither_a_new_one_nor_an_old_one_gets_any() -> None:
    left = replace(ANN, quota=None)
    assert AccessPart.QUOTA not in {step.part for step in additions(left, PrincipalState("ann"), quota=None)}
    assert additions(left, SETTLED, quota=None) == []


def test_a_password_is_replaced_only_when_told() -> None:
    (step,) = additions(ANN, SETTLED, quota=None, new_password=True)
    assert step.part is AccessPart.PASSWORD


def test_a_name_is_an_owners_or_a_brokers() -> None:
    with pytest.raises(NameTakenError, match=r"ann is an owner already.*nightwire user remove ann"):
        additions(broker("ann", ["lsst"]), SETTLED, quota=None)


def test_who_is_removed_loses_the_way_in_first() -> None:
    steps = removals(SETTLED)
    assert steps[0].part is AccessPart.PASSWORD
    assert {step.grant for step in steps if step.grant} == ANN.grants
    assert removals(PrincipalState("ann")) == []


SAID = """\
Quota configs for user-principal 'ann' are consumer_byte_rate=2.0E7, producer_byte_rate=1.0E7
SCRAM credential configs for user-principal 'ann' are SCRAM-SHA-512=iterations=4096
Quota configs for user-principal 'bob' are request_percentage=50.0
Quota configs for user-principal 'it''s' are producer_byte_rate=1024.0
"""


def test_quotas_are_read_from_what_kafkas_tool_says() -> None:
    assert quotas.read_quotas(SAID) == {"ann": 10_000_000}


def test_java_is_told_in_its_own_words_how_to_enter() -> None:
    keys = operator_credentials('it\'s "secret"\\') | {"ssl.ca.location": "/ca.pem", "linger.ms": "5"}
    found = quotas.java_properties(keys)
    assert found["sasl.jaas.config"].endswith(
        f'PlainLoginModule required username="{SUPER_USER}" password="it\'s \\"secret\\"\\\\";'
    )
    assert found["ssl.truststore.location"] == "/ca.pem"
    assert "linger.ms" not in found
    with pytest.raises(quotas.QuotaError, match="OAUTHBEARER"):
        quotas.java_properties({"sasl.mechanism": "OAUTHBEARER"})


@pytest.mark.parametrize("given", ["short", "twelve·chars·and·more", "twelve chars\nand a line"])
def test_a_password_that_clients_could_spell_differently_is_refused(given: str) -> None:
    with pytest.raises(passwords.PasswordError, match="12 or more"):
        passwords.given_password({passwords.VARIABLE: given})
    assert passwords.given_password({}) is None
    assert len(passwords.random_password()) == 32


@pytest.mark.parametrize(("text", "size"), [("20MB", 20_000_000), ("1.5 KiB", 1536), ("0B", 0)])
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["20", "MB", "20 mb", "-1B", ""])
def test_a_size_without_a_unit_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="such as 20MB"):
        parse_size(text)


@given(st.integers(0, 999), st.sampled_from(["B", "kB", "MB", "GB"]))
def test_sizes_are_spelt_so_that_they_can_be_read(number: int, unit: str) -> None:
    size = number * SIZE_UNITS[unit]
    assert parse_size(spell_size(size)) == size


def test_the_environment_and_properties_are_the_same_thing_twice() -> None:
    keys = operator_credentials("secret")
    assert properties(environment(keys)) == keys


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder of a stack that asks who is there, and forget who we are."""
    for name in [name for name in os.environ if name.startswith("KAFKA_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NIGHTWIRE_STATE", str(tmp_path))
    state = {"endpoints": {"kafka": "127.0.0.1:9092"}, "auth": "scram"}
    (tmp_path / "state.json").write_text(json.dumps(state))
    write_credentials(tmp_path, operator_credentials("secret"))
    return tmp_path


def test_the_stacks_keys_are_its_operators_alone(stack: Path) -> None:
    assert (stack / FILE).stat().st_mode & 0o777 == 0o600
    assert stack_credentials("127.0.0.1:9092") == operator_credentials("secret")


def test_the_stacks_keys_are_shown_to_no_other_kafka(stack: Path) -> None:
    assert stack_credentials("kafka.example.org:9092") == {}


def test_the_environment_says_who_we_are_before_the_stack_does(
    stack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_LINGER_MS", "7")
    assert identity("127.0.0.1:9092") == operator_credentials("secret") | {"linger.ms": "7"}
    monkeypatch.setenv("KAFKA_SASL_USERNAME", "ann")
    assert identity("127.0.0.1:9092") == {"linger.ms": "7", "sasl.username": "ann"}


@pytest.mark.parametrize(
    ("surveys", "files", "lite", "named"),
    [
        (["lsst"], ["bright.py", "rising.sql"], False, ["bright", "rising"]),
        (["lsst", "ztf"], ["bright.py"], False, ["bright-lsst", "bright-ztf"]),
        (["lsst"], [], True, ["lite"]),
        (["lsst"], ["bright.py"], True, ["bright"]),
        (["lsst"], [], False, []),
    ],
)
def test_a_broker_orders_a_stream_of_each_filter_and_survey(
    surveys: list[str], files: list[str], lite: bool, named: list[str]
) -> None:
    found = list(stream_filters("fink", surveys, [Path("my") / file for file in files], lite=lite))
    assert [one[one.index("--output") + 1] for one in found] == [f"broker.fink.{name}" for name in named]
    assert [one[one.index("--name") + 1] for one in found] == named
    assert all(("--lite" in one) == lite and one[one.index("--cap") + 1] == "0" for one in found)


def test_a_file_whose_name_is_no_streams_is_refused() -> None:
    with pytest.raises(NameError_, match="'My filter' is no name here"):
        list(stream_filters("fink", ["lsst"], [Path("My filter.py")], lite=False))
