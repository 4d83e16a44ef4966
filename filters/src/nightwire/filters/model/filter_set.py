"""The filter set: all versions of all filters, and which of them are live.  Pure.

It is made of the records of the topic `filters`: one for each version (key ``owner/name/version``),
and one that says which version is live (key ``owner/name``, version 0 for none).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any

from nightwire.filters.model.live_filter import LiveFilter
from nightwire.schemas import records

FilterRecord = Mapping[str, Any]


@dataclass
class FilterSet:
    """All filters, as the records up to some offset say."""

    versions: dict[tuple[str, str, int], FilterRecord] = field(default_factory=dict)
    pointers: dict[tuple[str, str], FilterRecord] = field(default_factory=dict)

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take in a record of the topic as it lies there.

        Raises:
            DecodeError: It is none of ours.
        """
        self.apply((key or b"").decode(), None if value is None else records.FILTER.decode(value))

    def apply(self, key: str, record: FilterRecord | None) -> None:
        """Take in one record of the topic; None is a tombstone."""
        owner, name, *version = key.split("/")
        if version and record is not None:
            self.versions[owner, name, int(version[0])] = record
        elif version:
            self.versions.pop((owner, name, int(version[0])), None)
        elif record is not None:
            self.pointers[owner, name] = record
        else:
            self.pointers.pop((owner, name), None)

    def live(self) -> list[LiveFilter]:
        """Return the live version of each filter, by owner and name."""
        found = (
            (name, self.versions.get((*name, pointer["version"])))
            for name, pointer in sorted(self.pointers.items())
            if pointer["version"] and pointer["live"]
        )
        return [to_filter(record) for _, record in found if record is not None]

    def live_version(self, owner: str, name: str) -> int:
        """Return the live version of a filter; 0 when none is."""
        pointer = self.pointers.get((owner, name))
        return int(pointer["version"]) if pointer and pointer["live"] else 0

    def newest(self, owner: str, name: str) -> int:
        """Return the highest version of a filter that was ever accepted; 0 when there is none."""
        return max((number for who, what, number in self.versions if (who, what) == (owner, name)), default=0)

    def needed(self) -> list[LiveFilter]:
        """Return the versions that are live or stopped, the newer ones, and the one before each.

        That is what `enable` and `rollback` go to where they are not told a version; of a filter
        that was removed, nothing.
        """
        found = []
        for name, pointer in self.pointers.items():
            if at := pointer["version"]:
                numbers = [number for *who, number in self.versions if tuple(who) == name]
                first = max((one for one in numbers if one < at), default=at)
                found += [to_filter(self.versions[*name, one]) for one in numbers if one >= first]
        return found

    def names(self) -> list[tuple[str, str]]:
        """Return (owner, name) of every filter there is or was."""
        return sorted({(owner, name) for owner, name, _ in self.versions})


def to_filter(record: FilterRecord) -> LiveFilter:
    """Return the filter that a version's record holds."""
    names = [one.name for one in fields(LiveFilter) if one.name in record]
    return _tupled({name: record[name] for name in names})


def milliseconds(time: Any) -> int:
    """Return a record's time as milliseconds since 1970; the codec gives it as a datetime."""
    return round(time.timestamp() * 1000) if isinstance(time, datetime) else int(time)


def dump(filters: Sequence[LiveFilter]) -> str:
    """Return *filters* as JSON."""
    return json.dumps([asdict(one) for one in filters])


def load(text: str) -> list[LiveFilter]:
    """Return the filters of a result of `dump`."""
    return [_tupled(values) for values in json.loads(text)]


def _tupled(values: Mapping[str, Any]) -> LiveFilter:
    """Return the filter of *values*, its lists as tuples."""
    tupled: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in values.items()
    }
    return LiveFilter(**tupled)
