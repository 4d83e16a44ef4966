"""What a reader was asked for, checked before anything is opened."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, get_args

from nightwire.consumers.alert import Dedup
from nightwire.core.datagrams import GroupAddress

StartMode = Literal["beginning", "live"]


@dataclass(frozen=True)
class AutoGroup:
    """Instead of a group: that of whichever channel is right now, on this *interface*."""

    interface: str = ""


@dataclass(frozen=True)
class Plan:
    """What to read, and from where.

    Attributes:
        topics: Their names.
        group: The group that keeps the position; None reads by assignment and commits nothing.
        since: How long ago, or when, reading begins.
        last: Begin with the newest so many of each topic.
        start: Where to begin without *since*, *last* and *visit*; None lets `begins` decide.
        follow: Whether to wait for more at the end.
        visit: Read this visit alone.
        member: Name of this member of the group, kept over restarts.
        dedup: What makes two records the same alert; None passes all on.
        choose: Returns the topics of now, where they change while they are read.
        multicast: The group that is listened to, for what a relay sends of the topics; or how one
            is found.
        slow_link: Age above which a directory sends less of each alert; None reads from Kafka. [s]
        rank: By which attribute it chooses alerts where not all can be sent.
        first: SQL condition, or a function's source: what it holds for is chosen before others.
    """

    topics: Sequence[str]
    group: str | None = None
    since: timedelta | datetime | None = None
    last: int | None = None
    start: StartMode | None = None
    follow: bool = True
    visit: int | None = None
    member: str | None = None
    dedup: Dedup | None = None
    choose: Callable[[], Sequence[str]] | None = None
    multicast: GroupAddress | AutoGroup | None = None
    slow_link: float | None = None
    rank: str = "magnitude"
    first: str = ""

    def __post_init__(self) -> None:
        if faults := [*self._of_begin(), *self._of_group(), *self._of_slow_link()]:
            raise ValueError("; ".join(faults))

    @property
    def begins(self) -> StartMode:
        """Where reading begins: what was asked for, else where people expect it.

        A group begins with the oldest, so that nothing is missed; a reader without one begins live,
        or with the oldest where it is not to wait for more.
        """
        if self.start is not None:
            return self.start
        return "live" if self.group is None and self.follow else "beginning"

    def _of_begin(self) -> list[str]:
        asked = [name for name in ("since", "last", "start", "visit") if getattr(self, name) is not None]
        faults = [] if self.topics or (self.choose and self.follow) else ["no topic to read"]
        if len(asked) > 1:
            faults.append(f"{' and '.join(asked)} exclude each other")
        if self.last is not None and self.last < 1:
            faults.append(f"last={self.last}: ask for at least one")
        if self.visit is not None and (len(self.topics) > 1 or self.choose):
            faults.append("a visit lies in one topic, alerts.<survey>")
        if self.multicast is not None and (self.visit is not None or self.choose or not self.follow):
            faults.append(
                "multicast is live: it goes with topics by name, and not without follow, or with visit"
            )
        if self.start not in (None, *get_args(StartMode)):
            faults.append(f"start={self.start!r} is neither 'beginning' nor 'live'")
        return faults

    def _of_group(self) -> list[str]:
        faults = [
            f"{name} reads without a group: a group goes on where it was"
            for name in ("last", "visit")
            if self.group is not None and getattr(self, name) is not None
        ]
        if self.member is not None and self.group is None:
            faults.append(f"member={self.member!r} is a member of a group: name the group too")
        if self.dedup not in (None, *get_args(Dedup)):
            faults.append(f"dedup={self.dedup!r} is neither 'offset' nor 'alert'")
        return faults

    def _of_slow_link(self) -> list[str]:
        if self.slow_link is None:
            return []
        names = ("since", "last", "start", "visit", "dedup", "multicast", "choose")
        faults = [
            f"a slow link has no {name}: it begins where its group is, and alerts come again whole"
            for name in names
            if getattr(self, name) is not None
        ]
        if self.group is None or len(self.topics) != 1:
            faults.append("a slow link goes with one topic and a group, which is owed what did not come")
        return faults
