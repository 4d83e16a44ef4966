"""The topics that a filter may read: checked by name and by right, before it is live and after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from confluent_kafka import KafkaError, KafkaException

from nightwire.core import kafka
from nightwire.core.access import ReadRights, read_rights
from nightwire.filters.language import FilterError
from nightwire.filters.model.chains import find_cycle
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.schemas import meant, surveys
from nightwire.schemas.topics import NameError_, alerts, settings

KINDS = ("alerts", "filter", "broker")
NOT_LET = (
    "this engine may not ask Kafka who may read what: "
    "its principal needs Describe and DescribeConfigs on the cluster"
)
FORMS = "alerts.<survey>, filter.<owner>.<name> or broker.<broker>.<stream>"


@dataclass(frozen=True)
class SourceChecker:
    """Checks that the sources of a filter exist, and that its owner may read them.

    Args:
        bootstrap: Kafka's address.
    """

    bootstrap: str

    def refusals(self, one: LiveFilter, live: Sequence[LiveFilter]) -> list[str]:
        """Return the reasons why filter *one* may not read its sources beside the *live* filters.

        Raises:
            KafkaException: Kafka does not answer.
        """
        return self._absent(one, live) or self.forbidden([one]).get(one.key, [])

    def forbidden(self, filters: Sequence[LiveFilter]) -> dict[str, list[str]]:
        """Return why those of *filters*, by their keys, may not go on that read what they may not.

        Raises:
            FilterError: Kafka does not let us ask.
            KafkaException: Kafka does not answer.
        """
        rights = self._rights() if filters else ReadRights()
        return {one.key: reasons for one in filters if (reasons := [*missing_rights(one, rights)])}

    def _rights(self) -> ReadRights:
        try:
            return read_rights(self.bootstrap)
        except KafkaException as error:
            if kafka.error_code(error) != KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                raise
            raise FilterError(NOT_LET) from error

    def _absent(self, one: LiveFilter, live: Sequence[LiveFilter]) -> list[str]:
        """Return the objections to a filter's sources that are none, or make a cycle."""
        if not one.sources:
            return []
        if misnamed := [*misnamed_sources(one)]:
            return misnamed
        if cycle := find_cycle([one, *(other for other in live if other.key != one.key)]):
            return [f"a cycle: {' reads '.join(cycle)}"]
        topics = kafka.admin(self.bootstrap).list_topics(timeout=10).topics
        absent = [topic for topic in one.sources if topic not in topics]
        return [f"there is no topic {topic}{_suggestion(topic, [*topics])}" for topic in absent]


def missing_rights(one: LiveFilter, rights: ReadRights) -> Iterator[str]:
    """Yield the topics that filter *one* reads and its owner may not, each with advice.  Pure."""
    own = (f"filter.{one.owner}.", f"broker.{one.owner}.")
    everything = one.survey == "*" and not one.sources
    for topic in one.sources or (alerts(name) for name in surveys() if one.survey in ("*", name)):
        if not topic.startswith(own) and not rights.allow(one.owner, topic):
            advice = "name one survey in place of *" if everything else _advice(topic)
            yield f"{one.owner} may not read {topic}: {advice}"


def misnamed_sources(one: LiveFilter) -> Iterator[str]:
    """Yield the objections to the names of a filter's sources.  Pure."""
    for topic in one.sources:
        kind, _, survey = topic.partition(".")
        try:
            settings(topic, {})
        except NameError_:
            kind = ""
        if kind not in KINDS:
            yield f"a filter reads {FORMS}, not {topic}"
        elif kind == "alerts" and survey not in surveys():
            yield f"no survey {survey}; there are: {', '.join(surveys())}{meant(survey, surveys())}"
        elif kind == "alerts" and one.survey not in ("*", survey):
            yield f"{topic} holds no alerts of survey {one.survey}, for which it is submitted"


def _suggestion(topic: str, topics: Sequence[str]) -> str:
    near = get_close_matches(topic, [name for name in topics if name.startswith(KINDS)], 1)
    return f"; there is {near[0]}" if near else ""


def _advice(topic: str) -> str:
    owner = topic.split(".")[1]
    return (
        f"ask {owner}, or who runs this Kafka, for the right"
        if topic.count(".") > 1
        else "ask who runs this Kafka"
    )
