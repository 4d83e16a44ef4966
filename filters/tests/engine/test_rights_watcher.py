"""A filter reads what its owner may read: when it is submitted, enabled, and while it is live."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding, AclBindingFilter
from prometheus_client import CollectorRegistry

from nightwire.core.access.kafka_admin import _binding
from nightwire.core.access.rights import Grant, Operation
from nightwire.core.kafka import admin, ensure_topics
from nightwire.core.runtime import now_ms
from nightwire.filters.admission import SourceChecker
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.admission.service import Reply, SubmissionService
from nightwire.filters.admission.transform_check import Request
from nightwire.filters.authoring.client import Submission
from nightwire.filters.cli.queries import read_filters
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.engine.supervisor import suspend_forbidden
from nightwire.filters.language import FilterError
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.stats.metrics import Metrics
from nightwire.schemas.topics import settings
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as

pytestmark = pytest.mark.kafka

SECRETS = {"fink": "fink's own password"}
REQUEST = {"id": "1", "owner": "fink", "version": 0}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Yield a Kafka with the broker fink, which may read the survey sim; we are its operator."""
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one, speaking_as(one.keys):
        done = one.run("broker", "add", "fink", "--survey", "sim", "--quota", "0B", password=SECRETS["fink"])
        assert done.exit_code == 0, done.output
        topics = ("filters", "alerts.sim", "alerts.lsst", "answers.fink")
        ensure_topics(one.bootstrap, [settings(name) for name in topics])
        yield one


@pytest.fixture
def service(guarded: Guarded, tmp_path: Path) -> Iterator[SubmissionService]:
    service = SubmissionService(guarded.bootstrap, "http://127.0.0.1:9", tmp_path, Catalog(guarded.bootstrap))
    yield service
    service.close()


def asked(service: SubmissionService, action: str, name: str, **fields: Any) -> Reply:
    """Return the reply to a request of fink's."""
    known = Submission("sql", "WHERE snr > 0", "", cap=0, output=f"broker.fink.{name}").fields()
    request: Request = {**REQUEST, "action": action, "name": name, "time": now_ms(), **known, **fields}
    return service.reply(request, "fink")


@pytest.mark.parametrize("survey", ["lsst", "*"])
def test_a_broker_reads_no_survey_that_it_was_not_given(service: SubmissionService, survey: str) -> None:
    accepted, _, reasons = asked(service, "submit", "steal", survey=survey)
    assert not accepted
    assert "fink may not read alerts.lsst" in "; ".join(reasons)
    assert not read_filters(service.bootstrap).live_version("fink", "steal")


def test_a_filter_whose_survey_is_taken_away_is_suspended(
    guarded: Guarded, service: SubmissionService
) -> None:
    kafka, right = admin(guarded.bootstrap), _binding("fink", Grant("alerts.sim", Operation.READ))
    assert asked(service, "submit", "mine", survey="sim")[0]
    control, metrics = ControlProducer(guarded.bootstrap), Metrics(CollectorRegistry())
    suspend_forbidden(service.catalog, metrics, control)
    assert read_filters(guarded.bootstrap).live_version("fink", "mine")
    (taken,) = kafka.delete_acls([_one(right)]).values()
    taken.result(30)
    suspend_forbidden(service.catalog, metrics, control)
    pointer = read_filters(guarded.bootstrap).pointers["fink", "mine"]
    assert (pointer["live"], pointer["suspended"][:29]) == (False, "fink may not read alerts.sim:")
    for action in ("enable", "rollback"):
        accepted, _, reasons = asked(service, action, "mine", version=1)
        assert not accepted
        assert "fink may not read alerts.sim" in reasons[0]
    assert kafka.create_acls([right])[right].result(30) is None
    assert asked(service, "enable", "mine")[0]


def test_an_engine_that_may_not_ask_for_rights_refuses(guarded: Guarded) -> None:
    one = LiveFilter("fink", "mine", 1, "sim", "", "keep")
    with (
        speaking_as(keys_of("fink", SECRETS["fink"])),
        pytest.raises(FilterError, match="may not ask Kafka who may"),
    ):
        SourceChecker(guarded.bootstrap).forbidden([one])


def _one(right: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        right.restype, right.name, right.resource_pattern_type, right.principal, right.host,
        right.operation, right.permission_type,
    )  # fmt: skip
