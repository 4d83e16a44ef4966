"""The newest alerts of each topic, indexed by id, object and position; bounded."""

from bisect import bisect
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from operator import attrgetter
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from nightwire.core.voevents import Post
from nightwire.portal.model.rows import Classification, RecordId, Row

SurveyId = tuple[str, str]
"""A survey, and the id of an alert or object in it."""
FILTERS = "filter."
"""Prefix of filters' topics."""
FILTERS_FACTOR = 5
"""Most rows of all filters together, in multiples of a topic's: there may be a thousand filters."""
POSTS = 2000
"""Newest VOEvents that are kept for threads."""


class RecentAlerts:
    """The newest *keep* alerts of each topic; of all filters `FILTERS_FACTOR` times as many.

    Safe to use from several threads.

    Args:
        keep: Most alerts of one topic.
    """

    def __init__(self, keep: int) -> None:
        self._keep, self._lock, self._filter_rows = keep, Lock(), 0
        self._numbers: dict[str, int] = defaultdict(int)
        self._topics: dict[str, deque[Row]] = defaultdict(deque)
        self._by_id: dict[SurveyId, dict[RecordId, Row]] = defaultdict(dict)
        self._last_offsets: dict[tuple[str, int], int] = {}
        self._offsets_at_restart: dict[tuple[str, int], int] = {}
        self._classifications: OrderedDict[tuple[str, str], dict[str, Classification]] = OrderedDict()
        self._posts: deque[Post] = deque(maxlen=POSTS)

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    @property
    def count_read(self) -> int:
        """Number of rows that were ever added."""
        with self._lock:
            return sum(self._numbers.values())

    def newest_number(self, topics: Iterable[str]) -> int:
        """Return the number of the last row of *topics*, which are numbered together; else 0."""
        return max((self._numbers.get(_sequence(topic), 0) for topic in topics), default=0)

    @property
    def topics(self) -> list[str]:
        """Names of the topics with rows."""
        with self._lock:
            return sorted(name for name, rows in self._topics.items() if rows)

    def expect_repeats(self) -> None:
        """Expect a new reader to repeat records, of which many may have been evicted."""
        with self._lock:
            self._offsets_at_restart = dict(self._last_offsets)

    def add(self, rows: Iterable[Row]) -> None:
        """Add *rows*, but for those of a partition and offset that were added before.

        Another alert at an offset that was read means that the topic was deleted and made anew: the
        partition's earlier rows are dropped.
        """
        with self._lock:
            for row in rows:
                partition = row.topic, row.partition
                if row.offset <= self._last_offsets.get(partition, -1):
                    if row.record_id in self._by_id.get((row.survey, row.id), {}) or self._was_evicted(row):
                        continue
                    self._drop_partition(*partition)
                self._last_offsets[partition] = row.offset
                self._numbers[sequence := _sequence(row.topic)] += 1
                self._append(replace(row, number=self._numbers[sequence]))

    def newest(self, topics: Collection[str], most: int, *, before: int | None = None) -> list[Row]:
        """Return up to *most* rows of *topics*, newest first.

        Args:
            topics: Names; one filter's, or others.
            most: How many.
            before: Only those whose number is less.
        """
        with self._lock:
            rows = (self._backward(topic, before) for topic in topics)
            return list(islice(merge(*rows, key=_newest_first), most))

    def since(self, number: int, topics: Collection[str], most: int) -> tuple[list[Row], int]:
        """Return the newest rows after *number*, newest first, and how many more there are."""
        with self._lock:
            count = sum(self._count_newer(topic, number) for topic in topics)
            rows = merge(*(self._backward(topic) for topic in topics), key=_newest_first)
            return list(islice(rows, min(count, most))), max(0, count - most)

    def named(self, survey: str, name: str, topics: Collection[str]) -> list[Row]:
        """Return the rows of an alert or an object, newest first, each alert once."""
        with self._lock:
            found = list(self._by_id.get((survey, name), {}).values())
        chosen = sorted((row for row in found if row.topic in topics), key=_newest_first)
        own = sorted(chosen, key=lambda row: row.topic != row.source)  # the survey's own record first
        return sorted({row.id: row for row in reversed(own)}.values(), key=_newest_seen_first)

    def any_named(self, name: str, topics: Collection[str]) -> list[Row]:
        """Return the newest row of each survey that has an alert or an object of that name."""
        surveys = {survey for survey, _ in list(self._by_id)}
        found = (self.named(survey, name, topics) for survey in sorted(surveys))
        return [rows[0] for rows in found if rows]

    def filters(self, row: Row, topics: Collection[str]) -> list[str]:
        """Return the topics of the filters that the alert of *row* passed."""
        with self._lock:
            found = list(self._by_id.get((row.survey, row.id), {}).values())
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
        once: dict[SurveyId, tuple[float, Row]] = {}
        for found in within:
            once.setdefault((found[1].survey, found[1].id), found)
        return list(once.values())[:most]

    def placed(self, topics: Collection[str], since: float = 0.0) -> list[Row]:
        """Return the rows of *topics* with a position, written since then. [s since 1970]"""
        with self._lock:
            rows = [row for topic in topics for row in self._topics.get(topic, ())]
        return [row for row in rows if row.ra is not None and row.dec is not None and row.written >= since]

    def add_classification(self, topic: str, one: Classification) -> None:
        """Add a classification from *topic*, in place of that classifier's earlier one."""
        key = topic, one.alert
        with self._lock:
            self._classifications.setdefault(key, {})[one.classifier] = one
            self._classifications.move_to_end(key)
            if len(self._classifications) > self._keep:
                self._classifications.popitem(last=False)

    def classifications(self, ids: Collection[str], topics: Collection[str]) -> list[Classification]:
        """Return the classifications in *topics* of the alerts with these *ids*."""
        with self._lock:
            asked = [key for key in self._classifications if key[0] in topics and key[1] in ids]
            return [one for key in asked for one in self._classifications[key].values()]

    def add_post(self, post: Post) -> None:
        """Add a VOEvent, as threads show it."""
        with self._lock:
            self._posts.append(post)

    def posts(self) -> list[Post]:
        """Return the newest VOEvents as threads show them, each once, newest first."""
        with self._lock:  # several gateways may have written one
            return list({(post.ivorn, post.version): post for post in self._posts}.values())[::-1]

    def _backward(self, topic: str, before: int | None = None) -> Iterator[Row]:
        rows = self._topics.get(topic, deque())
        newer = 0 if before is None else self._count_newer(topic, before - 1)
        return islice(reversed(rows), newer, None)

    def _count_newer(self, topic: str, number: int) -> int:
        rows = self._topics.get(topic, deque())
        return len(rows) - bisect(rows, number, key=attrgetter("number"))

    def _append(self, row: Row) -> None:
        rows = self._topics[row.topic]
        rows.append(row)
        for name in _ids(row):
            self._by_id[name][row.record_id] = row
        if len(rows) > self._keep:
            self._remove_from_index(rows.popleft())
        elif row.topic.startswith(FILTERS):
            self._filter_rows += 1
            self._evict_filter_row()

    def _evict_filter_row(self) -> None:
        """Evict the oldest row of the largest filter topic, if filters together have too many."""
        if self._filter_rows > FILTERS_FACTOR * self._keep:
            own = (rows for topic, rows in self._topics.items() if topic.startswith(FILTERS))
            self._remove_from_index(max(own, key=len).popleft())
            self._filter_rows -= 1

    def _was_evicted(self, row: Row) -> bool:
        """Whether *row*, read again, lies before all rows of its partition that are still kept."""
        own = (one.offset for one in self._topics[row.topic] if one.partition == row.partition)
        before = self._offsets_at_restart.get((row.topic, row.partition), -1)
        return row.offset <= before and row.offset < next(own, before + 1)

    def _drop_partition(self, topic: str, partition: int) -> None:
        """Drop all rows of a partition."""
        self._offsets_at_restart.pop((topic, partition), None)
        rows = self._topics.pop(topic, deque())
        self._topics[topic] = deque(row for row in rows if row.partition != partition)
        for row in rows:
            if row.partition == partition:
                self._remove_from_index(row)
        if topic.startswith(FILTERS):
            self._filter_rows -= len(rows) - len(self._topics[topic])

    def _remove_from_index(self, row: Row) -> None:
        for name in _ids(row):
            known = self._by_id[name]
            known.pop(row.record_id, None)
            if not known:
                del self._by_id[name]


def positions(rows: Sequence[Row]) -> NDArray[np.float64]:
    """Return the positions of *rows*, shape (n, 2). [deg]"""
    return np.array([(row.ra, row.dec) for row in rows], float).reshape(-1, 2)


def separation(ra: float, dec: float, others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of *others*, shape (n, 2), from a position, shape (n,). [deg]"""
    one, two = np.deg2rad([ra, dec]), np.deg2rad(others)
    part = np.sin((two[:, 1] - one[1]) / 2) ** 2
    part += np.cos(one[1]) * np.cos(two[:, 1]) * np.sin((two[:, 0] - one[0]) / 2) ** 2
    return np.asarray(np.rad2deg(2 * np.arcsin(np.sqrt(np.clip(part, 0, 1)))))


def _ids(row: Row) -> set[SurveyId]:
    return {(row.survey, name) for name in (row.id, row.object) if name is not None}


def _sequence(topic: str) -> str:
    """Return what numbers the rows of *topic*: a filter's topic itself; one sequence the others."""
    return topic if topic.startswith(FILTERS) else ""


def _newest_first(row: Row) -> int:
    return -row.number


def _newest_seen_first(row: Row) -> tuple[float, int]:
    return -(row.mjd or 0.0), -row.number
