"""The topics that a filter may read: checked, by name, before it goes live."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from nightwire.core import kafka
from nightwire.core.access import may_read
from nightwire.filters.model.chains import find_cycle
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.schemas import surveys
from nightwire.schemas.topics import NameError_, settings

KINDS = ("alerts", "filter", "broker")
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
        if not one.sources:
            return []
        if misnamed := [*misnamed_sources(one)]:
            return misnamed
        if cycle := find_cycle([one, *(other for other in live if other.key != one.key)]):
            return [f"a cycle: {' reads '.join(cycle)}"]
        topics = kafka.admin(self.bootstrap).list_topics(timeout=10).topics
        if absent := [topic for topic in one.sources if topic not in topics]:
            return [f"there is no topic {topic}{_suggestion(topic, [*topics])}" for topic in absent]
        return [
            f"{one.owner} may not read {topic}: {_advice(topic)}"
            for topic in one.sources
            if not self._is_readable(one, topic)
        ]

    def _is_readable(self, one: LiveFilter, topic: str) -> bool:
        own = topic.startswith((f"filter.{one.owner}.", f"broker.{one.owner}."))
        return own or may_read(self.bootstrap, one.owner, topic)


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
            yield f"no survey {survey}; there are: {', '.join(surveys())}"
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
