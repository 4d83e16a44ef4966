"""One live filter as the engine judges by it: a version of a record of the topic `filters`."""

from dataclasses import dataclass

from nightwire.filters.model.text_facts import TextFacts, load_facts
from nightwire.filters.model.transform import Transform
from nightwire.schemas import topics

QUICK, SLOW = "quick", "slow"
"""Lanes; see `nightwire.filters.model.lane_choice`."""

FilterVersion = tuple[str, int]
"""A filter, ``owner/name``, and its version."""


@dataclass(frozen=True, order=True)
class LiveFilter:
    """One version of a filter.

    Attributes:
        owner: Whose.
        name: Which.
        version: Its version, from 1.
        survey: Whose alerts it judges; ``*`` means every survey's.
        source: Its text.
        entry: Its function, where it is Python.
        cap: Most alerts per visit that it lets through; 0 for all.
        choice: Which ones: ``first`` or ``best``.
        language: ``python`` or ``sql``.
        program: The same compiled, as text; empty where it is judged row by row.
        fields: Dotted paths of what it reads of an alert; empty where that is not known.
        sources: Topics that it judges; none for its survey's alerts.
        output: Topic of what passed; empty for its own.
        drop: Dotted paths of what a transform leaves out.
        means: Dotted paths of numbers in arrays whose mean a transform adds.
        transform: Its function that computes what is added; empty where nothing is.
        facts: What its text says, found when it was accepted (`TextFacts.dumps`).
        cost_us: CPU time for an alert, as tried; None where it was not. [µs]
        behind: What becomes of it where its lane is too far behind: ``newest`` or ``suspend``.
        lane: The lane that judges it, ``quick`` or ``slow``.
    """

    owner: str
    name: str
    version: int
    survey: str
    source: str
    entry: str
    cap: int = 20
    choice: str = "first"
    language: str = "python"
    program: str = ""
    fields: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    output: str = ""
    drop: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    transform: str = ""
    facts: str = ""
    cost_us: float | None = None
    behind: str = "newest"
    lane: str = QUICK

    @property
    def id(self) -> FilterVersion:
        """Its key and its version."""
        return (self.key, self.version)

    @property
    def key(self) -> str:
        """``owner/name``: its name in accounts and topics, whatever the version."""
        return f"{self.owner}/{self.name}"

    @property
    def topic(self) -> str:
        """Its output topic."""
        return self.output or topics.filter_topic(self.owner, self.name)

    @property
    def transformation(self) -> Transform:
        """The transformation of alerts that passed."""
        return Transform(self.drop, self.means, self.text_facts.adds if self.transform else ())

    @property
    def text_facts(self) -> TextFacts:
        """What its text says."""
        return load_facts(self.facts)

    def reads_topic(self, topic: str) -> bool:
        """Return whether it judges alerts that lie in *topic*."""
        if self.sources:
            return topic in self.sources
        kind, _, survey = topic.partition(".")
        return kind == "alerts" and self.survey in ("*", survey)

    def wants(self, survey: str, topic: str) -> bool:
        """Return whether it judges alerts of *survey* that lie in *topic*."""
        return self.survey in ("*", survey) and self.reads_topic(topic)
