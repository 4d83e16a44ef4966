"""The topics that a filter may read."""

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from nightwire.core.access.may_read import allows
from nightwire.core.kafka import ensure_topics
from nightwire.filters.admission.sources import SourceChecker, misnamed_sources
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.schemas.topics import settings


def reading(*sources: str, survey: str = "*") -> LiveFilter:
    """Return a filter of bob's."""
    return LiveFilter("bob", "f", 1, survey, "", "keep", sources=sources)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("visits", "not visits"),
        ("overflow.ann.bright", "a filter reads alerts.<survey>, filter.<owner>.<name>"),
        ("filter.ann", "not filter.ann"),
        ("filter.Ann.b", "not filter.Ann.b"),
        ("broker.fink.a.b", "not broker.fink.a.b"),
        ("alerts.none", "no survey none; there are: "),
        ("alerts.ztf", "alerts.ztf holds no alerts of survey sim"),
    ],
)
def test_a_misnamed_source_is_refused(source: str, said: str) -> None:
    (wrong,) = misnamed_sources(reading(source, survey="sim"))
    assert said in wrong


def test_well_named_sources_are_accepted() -> None:
    assert not list(misnamed_sources(reading("alerts.sim", "filter.ann.b", "broker.fink.x", survey="sim")))


@pytest.mark.kafka
def test_a_topic_must_be_there_and_no_filter_read_itself(kafka: str) -> None:
    ensure_topics(kafka, [settings("filter.ann.bright")])
    sources = SourceChecker(kafka)
    live = [LiveFilter("ann", "bright", 1, "*", "", "", sources=("filter.bob.f",))]
    assert sources.refusals(reading("filter.ann.brigth"), []) == [
        "there is no topic filter.ann.brigth; there is filter.ann.bright"
    ]
    assert sources.refusals(reading("filter.ann.bright"), live) == [
        "a cycle: bob/f reads ann/bright reads bob/f"
    ]
    assert sources.refusals(reading(), live) == []


ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


@pytest.mark.parametrize(
    ("rights", "expected"),
    [
        ([], False),
        ([("User:bob", AclOperation.READ, ALLOW)], True),
        ([("User:*", AclOperation.ALL, ALLOW)], True),
        ([("User:ann", AclOperation.READ, ALLOW), ("User:bob", AclOperation.WRITE, ALLOW)], False),
        ([("User:bob", AclOperation.READ, ALLOW), ("User:*", AclOperation.READ, DENY)], False),
    ],
    ids=["nothing", "his own", "everybody's", "another's", "denied"],
)
def test_kafkas_rights_decide(
    rights: list[tuple[str, AclOperation, AclPermissionType]], expected: bool
) -> None:
    bindings = [
        AclBinding(ResourceType.TOPIC, "filter.ann.", ResourcePatternType.PREFIXED, who, "*", deed, leave)
        for who, deed, leave in rights
    ]
    assert allows(bindings, "bob") is expected
