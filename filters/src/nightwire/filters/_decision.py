"""What is decided for a batch, before anything of it is sent.  Pure.

A re-run after a crash reads the decision and sends the same alerts again, never others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nightwire.filters._caps import Candidate, Caps, Changes
from nightwire.filters._choice import Cut, Moment, choose, passed
from nightwire.filters._judge import LiveFilter, Pass
from nightwire.filters._rows import BACKFILL, Counts, Dead, Hit, Judged
from nightwire.filters._shape import Shape
from nightwire.schemas.topics import filter_topic

NOTHING: Mapping[str, str] = {}

Named = tuple[str, int]
"""A filter, ``owner/name``, and its version."""


@dataclass(frozen=True, order=True)
class Pick:
    """One alert that goes to the topics of the filters it passed."""

    hit: Hit
    passes: tuple[Pass, ...] = field(compare=False)


@dataclass(frozen=True)
class Decision:
    """All that a batch will do to the outside.

    Attributes:
        filters: Version of the filter set.
        judges: The filters of that set, by their numbers.
        outputs: Topics of those filters that have not their own, by ``owner/name``; and
        shapes: what becomes of the alerts of those that are transforms.
        at: When the batch was planned. [ms since 1970, UTC]
        picks: Alerts of this batch that are sent.
        released: Alerts of earlier batches that are sent, by batch; and
        before: what of those batches was released already.
        cut: What is cut off.
        dead: Records that are no alerts.
        counts: What became of each range.
        changes: What this makes of the places.
    """

    filters: int
    judges: Sequence[Named] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    at: int = 0
    picks: Sequence[Pick] = ()
    released: Mapping[int, Sequence[Pick]] = field(default_factory=dict)
    before: Mapping[int, Sequence[Pick]] = field(default_factory=dict)
    cut: Cut = field(default_factory=Cut)
    dead: Sequence[Dead] = ()
    counts: Sequence[Counts] = ()
    changes: Changes = field(default_factory=Changes)

    def topic(self, key: str) -> str:
        """Return the topic of what passed filter *key*."""
        return self.outputs.get(key) or filter_topic(*key.split("/"))

    def sent(self) -> Iterator[Pick]:
        """Yield all alerts that are sent."""
        yield from self.picks
        for some in self.released.values():
            yield from some


def decide(judged: Judged, caps: Caps, filters: Sequence[LiveFilter], moment: Moment) -> Decision:
    """Return the decision for what workers *judged* by *filters*, after *caps*."""
    choice = choose(caps, judged, filters, moment)
    fresh = {one.batch for one in choice.released}
    return Decision(
        filters=moment.filters,
        judges=[(one.key, one.version) for one in filters],
        outputs={one.key: one.output for one in filters if one.output},
        shapes={one.key: one.shape for one in filters if one.shape},
        at=moment.at,
        picks=together(choice.sent),
        released={
            batch: _picks(one for one in choice.released if one.batch == batch) for batch in sorted(fresh)
        },
        before={batch: _picks(some) for batch, some in caps.released.items() if batch in fresh},
        cut=choice.cut,
        dead=judged.dead,
        counts=judged.counts,
        changes=choice.changes,
    )


def together(passes: Iterable[tuple[Hit, Pass]]) -> list[Pick]:
    """Return one pick for each alert, in order of place."""
    by_hit: dict[Hit, list[Pass]] = {}
    for hit, one in passes:
        by_hit.setdefault(hit, []).append(one)
    return [Pick(hit, tuple(by_hit[hit])) for hit in sorted(by_hit, key=lambda hit: hit[:3])]


def _picks(candidates: Iterable[Candidate]) -> list[Pick]:
    return together((one.hit, passed(one)) for one in candidates)


def headers(pick: Pick, one: Pass, carried: Mapping[str, str] = NOTHING) -> list[tuple[str, bytes]]:
    """Return the headers of *pick*'s copy for the filter that it passed; all are text.

    Args:
        pick: The alert.
        one: The filter.
        carried: What the alert brings along of another filter's topic.
    """
    hit = pick.hit
    values = {
        "filter": one.key,
        "version": one.version,
        "visit": "" if hit.visit is None else hit.visit,
        "rank": "" if one.rank is None else repr(one.rank),
        "survey": hit.survey,
        "alert": hit.alert,
        "topic": hit.topic,
        "partition": hit.partition,
        "offset": hit.offset,
        **carried,
    }
    if one.again:
        values["duplicate"] = "yes"
    if hit.past:
        values[BACKFILL] = "yes"
    return [(name, str(value).encode()) for name, value in values.items()]
