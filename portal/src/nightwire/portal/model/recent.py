"""The newest alerts of each topic, found by id, by object and by place; bounded."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from nightwire.core.voevents import Post
from nightwire.portal.model.rows import Classified, Row

Name = tuple[str, str]
"""Survey, and an id in it."""
FILTERS = "filter."
"""What the topics of filters begin with."""
PASSED = 5
"""Rows of all filters together, in those of one topic: there may be a thousand filters."""
POSTS = 2000
"""Newest VOEvents of which threads are made."""


class Recent:
    """The newest *keep* alerts of each topic, of filters together `PASSED` times as many.

    Safe to use from several threads.

    Args:
        keep: Most alerts of one topic.
    """

    def __init__(self, keep: int) -> None:
        self._keep, self._lock, self.newest_number, self._passed = keep, Lock(), 0, 0
        self._topics: dict[str, deque[Row]] = defaultdict(deque)
        self._named: dict[Name, dict[tuple[str, int, int], Row]] = defaultdict(dict)
        self._read: dict[tuple[str, int], int] = {}
        self._before: dict[tuple[str, int], int] = {}
        self._returned: OrderedDict[tuple[str, str], dict[str, Classified]] = OrderedDict()
        self._posts: deque[Post] = deque(maxlen=POSTS)

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    @property
    def topics(self) -> list[str]:
        """Names of the topics of which something is known."""
        with self._lock:
            return sorted(name for name, rows in self._topics.items() if rows)

    def begin_again(self) -> None:
        """Expect, from a new reader, what was read before, of which much may be forgotten."""
        with self._lock:
            self._before = dict(self._read)

    def add(self, rows: Iterable[Row]) -> None:
        """Take in *rows*; what came before, of the same partition and offset, is passed over.

        Another alert at an offset that was read is of a topic that was made anew: what lay there
        before is forgotten.
        """
        with self._lock:
            for row in rows:
                partition = row.topic, row.partition
                if row.offset <= self._read.get(partition, -1):
                    if row.place in self._named.get((row.survey, row.id), {}) or self._is_past(row):
                        continue
                    self._forget_partition(*partition)
                self._read[partition] = row.offset
                self.newest_number += 1
                self._take(replace(row, number=self.newest_number))

    def newest(self, topics: Collection[str], most: int, *, before: int | None = None) -> list[Row]:
        """Return up to *most* rows of *topics*, newest first.

        Args:
            topics: Names.
            most: How many.
            before: Only those whose number is less.
        """
        with self._lock:
            rows = merge(*(self._backward(topic) for topic in topics), key=_age)
            older = (row for row in rows if before is None or row.number < before)
            return list(islice(older, most))

    def since(self, number: int, topics: Collection[str], most: int) -> tuple[list[Row], int]:
        """Return the newest rows behind *number*, newest first, and how many more there are."""
        found: list[Row] = []
        with self._lock:
            for topic in topics:
                for row in self._backward(topic):
                    if row.number <= number:
                        break
                    found.append(row)
        found.sort(key=_age)
        return found[:most], max(0, len(found) - most)

    def named(self, survey: str, name: str, topics: Collection[str]) -> list[Row]:
        """Return the rows of an alert or an object, newest first, each alert once."""
        with self._lock:
            found = list(self._named.get((survey, name), {}).values())
        chosen = sorted((row for row in found if row.topic in topics), key=_age)
        own = sorted(chosen, key=lambda row: row.topic != row.source)  # the survey's own record first
        return sorted({row.id: row for row in reversed(own)}.values(), key=_seen)

    def any_named(self, name: str, topics: Collection[str]) -> list[Row]:
        """Return the newest row of each survey that has an alert or an object of that name."""
        surveys = {survey for survey, _ in list(self._named)}
        found = (self.named(survey, name, topics) for survey in sorted(surveys))
        return [rows[0] for rows in found if rows]

    def filters(self, row: Row, topics: Collection[str]) -> list[str]:
        """Return the topics of the filters that an alert passed."""
        with self._lock:
            found = list(self._named.get((row.survey, row.id), {}).values())
        return sorted({one.topic for one in found if one.topic != one.source and one.topic in topics})

    def near(
        self, ra: float, dec: float, radius: float, topics: Collection[str], most: int
    ) -> list[tuple[float, Row]]:
        """Return the alerts within *radius* of a position, nearest first, each with its distance.

        Args:
            ra: [deg]
            dec: [deg]
            radius: [deg]
            topics: Names.
            most: How many.
        """
        rows = self.placed(topics)
        distances = separation(ra, dec, positions(rows))
        order = np.argsort(distances, kind="stable")
        within = [(float(distances[at]), rows[at]) for at in order[: int((distances <= radius).sum())]]
        once: dict[Name, tuple[float, Row]] = {}
        for found in within:
            once.setdefault((found[1].survey, found[1].id), found)
        return list(once.values())[:most]

    def placed(self, topics: Collection[str], since: float = 0.0) -> list[Row]:
        """Return the rows of *topics* with a position, written since then. [s since 1970]"""
        with self._lock:
            rows = [row for topic in topics for row in self._topics.get(topic, ())]
        return [row for row in rows if row.ra is not None and row.dec is not None and row.written >= since]

    def take_return(self, topic: str, returned: Classified) -> None:
        """Keep what a community broker wrote to *topic*, in place of that classifier's earlier."""
        key = topic, returned.alert
        with self._lock:
            self._returned.setdefault(key, {})[returned.classifier] = returned
            self._returned.move_to_end(key)
            if len(self._returned) > self._keep:
                self._returned.popitem(last=False)

    def returned(self, ids: Collection[str], topics: Collection[str]) -> list[Classified]:
        """Return what brokers sent back about the alerts of these *ids*, in *topics*."""
        with self._lock:
            asked = [key for key in self._returned if key[0] in topics and key[1] in ids]
            return [one for key in asked for one in self._returned[key].values()]

    def take_post(self, post: Post) -> None:
        """Keep what a thread shows of a VOEvent."""
        with self._lock:
            self._posts.append(post)

    def posts(self) -> list[Post]:
        """Return what threads show of the newest VOEvents, each once, newest first."""
        with self._lock:  # several gateways may have written one
            return list({(post.ivorn, post.version): post for post in self._posts}.values())[::-1]

    def _backward(self, topic: str) -> Iterator[Row]:
        return reversed(self._topics.get(topic, deque()))

    def _take(self, row: Row) -> None:
        rows = self._topics[row.topic]
        rows.append(row)
        for name in _names(row):
            self._named[name][row.place] = row
        if len(rows) > self._keep:
            self._forget(rows.popleft())
        elif row.topic.startswith(FILTERS):
            self._passed += 1
            self._bound_filters()

    def _bound_filters(self) -> None:
        """Forget the oldest of the filter that has most, where all together have too many."""
        if self._passed > PASSED * self._keep:
            own = (rows for topic, rows in self._topics.items() if topic.startswith(FILTERS))
            self._forget(max(own, key=len).popleft())
            self._passed -= 1

    def _is_past(self, row: Row) -> bool:
        """Whether *row*, read again, lies before all that is still known of its partition."""
        own = (one.offset for one in self._topics[row.topic] if one.partition == row.partition)
        before = self._before.get((row.topic, row.partition), -1)
        return row.offset <= before and row.offset < next(own, before + 1)

    def _forget_partition(self, topic: str, partition: int) -> None:
        """Forget what is known of a partition."""
        self._before.pop((topic, partition), None)
        rows = self._topics.pop(topic, deque())
        self._topics[topic] = deque(row for row in rows if row.partition != partition)
        for row in rows:
            if row.partition == partition:
                self._forget(row)
        if topic.startswith(FILTERS):
            self._passed -= len(rows) - len(self._topics[topic])

    def _forget(self, row: Row) -> None:
        for name in _names(row):
            known = self._named[name]
            known.pop(row.place, None)
            if not known:
                del self._named[name]


def positions(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the positions of *rows*, shape (n, 2). [deg]"""
    return np.array([(row.ra, row.dec) for row in rows], float).reshape(-1, 2)


def separation(ra: float, dec: float, others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of *others*, shape (n, 2), from a position, shape (n,). [deg]"""
    one, two = np.deg2rad([ra, dec]), np.deg2rad(others)
    part = np.sin((two[:, 1] - one[1]) / 2) ** 2
    part += np.cos(one[1]) * np.cos(two[:, 1]) * np.sin((two[:, 0] - one[0]) / 2) ** 2
    return np.asarray(np.rad2deg(2 * np.arcsin(np.sqrt(np.clip(part, 0, 1)))))


def _names(row: Row) -> set[Name]:
    return {(row.survey, name) for name in (row.id, row.object) if name is not None}


def _age(row: Row) -> int:
    return -row.number


def _seen(row: Row) -> tuple[float, int]:
    return -(row.mjd or 0.0), -row.number
