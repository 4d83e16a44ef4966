"""The engine's own copy of the filter set, and the only hand that writes the topic `filters`."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

from nightwire.filters.admission.sources import SourceChecker
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.filter_set import FilterSet, milliseconds, to_filter
from nightwire.filters.reading.followers import FilterFollower
from nightwire.schemas import records
from nightwire.schemas.topics import FILTERS

SUBMITTED = (
    *("survey", "language", "source", "entry", "cap", "choice", "sources", "output"),
    *("drop", "means", "transform"),
)
"""What of a request makes the filter what it is."""


class Catalog:
    """Filters by owner, name and version.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
    """

    def __init__(self, bootstrap: str) -> None:
        self._sources = SourceChecker(bootstrap)
        self._outbox = ControlProducer(bootstrap)
        self._lock = threading.Lock()
        self._watch = FilterFollower(bootstrap)

    def accept(
        self,
        request: Mapping[str, Any],
        compiled: Compilation,
        before: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Make the filter of a request live and return its version; asked twice, it is the same version.

        Args:
            request: What is submitted.
            compiled: What became of it.
            before: Called with the version before anybody can see it.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            owner, name = request["owner"], request["name"]
            version = _same(known, request) or known.newest(owner, name) + 1
            record = _record(request, compiled, version)
            if known.live_version(owner, name) != version:
                before(version)
                self._write({f"{owner}/{name}/{version}": record, f"{owner}/{name}": record})
            return version

    def refusals(self, request: Mapping[str, Any]) -> list[str]:
        """Return why the filter of *request* may not read its sources; empty where it may.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            return self._sources.refusals(to_filter(request), self._refreshed().live())

    def unchanged(self, request: Mapping[str, Any]) -> int:
        """Return the live version when it is just what *request* submits, else 0.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            owner, name = request["owner"], request["name"]
            version = known.live_version(owner, name)
            live = known.versions.get((owner, name, version), {})
            return version if all(live.get(part) == request[part] for part in SUBMITTED) else 0

    def enable(self, owner: str, name: str, version: int = 0) -> int:
        """Make a version live that was accepted before; return it, 0 when there is none such.

        Args:
            owner: Whose.
            name: Which.
            version: Which version; 0 for the one that was live last, else the newest.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            wanted = version or _pointed(known, owner, name) or known.newest(owner, name)
            return self._point(known, owner, name, wanted)

    def roll_back(self, owner: str, name: str, version: int = 0) -> int:
        """Make an earlier version live; return it, 0 when there is none such.

        Args:
            owner: Whose.
            name: Which.
            version: Which version; 0 for the newest that is older than the one that is live.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            now = _pointed(known, owner, name) or known.newest(owner, name) + 1
            earlier = (one for who, what, one in known.versions if (who, what) == (owner, name) and one < now)
            return self._point(known, owner, name, version or max(earlier, default=0))

    def stop(
        self, owner: str, name: str, version: int | None = None, *, suspended: str = "", keep: bool = False
    ) -> int:
        """Take a filter out of the live set; return the version that was live, 0 when none was.

        Args:
            owner: Whose.
            name: Which.
            version: Only if this is the live one.
            suspended: Why the engine does so; its owner may enable it again.
            keep: Whether its owner may enable it again without naming the version.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            live = known.live_version(owner, name)
            if live and version in (None, live):
                kept = live if keep or suspended else 0
                changes = {"version": kept, "live": False, "suspended": suspended}
                self._write({f"{owner}/{name}": {**known.versions[owner, name, live], **changes}})
            return live

    def _point(self, known: FilterSet, owner: str, name: str, version: int) -> int:
        """Make *version* the live one, if there is such a version; return it, else 0.

        Raises:
            FilterError: It may not read its sources.
        """
        record = known.versions.get((owner, name, version))
        if record is None:
            return 0
        if known.live_version(owner, name) != version:
            if reasons := self._sources.refusals(to_filter(record), known.live()):
                raise FilterError(*reasons)
            self._write({f"{owner}/{name}": {**record, "live": True, "suspended": ""}})
        return version

    def _refreshed(self) -> FilterSet:
        self._watch.refresh()
        return self._watch.filters

    def _write(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write in the order given: a version before the record that makes it live."""
        with self._outbox.writer() as writer:
            for key, record in entries.items():
                writer.write(FILTERS, records.FILTER.encode(record), key=key.encode())


def _pointed(known: FilterSet, owner: str, name: str) -> int:
    """Return the version that is live, or was until it was stopped; 0 when there is none."""
    pointer = known.pointers.get((owner, name))
    return int(pointer["version"]) if pointer else 0


def _same(known: FilterSet, request: Mapping[str, Any]) -> int:
    """Return the version that this very request has already made, or 0."""
    owner, name = request["owner"], request["name"]
    version = known.newest(owner, name)
    made = known.versions.get((owner, name, version))
    if made is None or milliseconds(made["submitted"]) != milliseconds(request["time"]):
        return 0
    return version if all(made[part] == request[part] for part in SUBMITTED) else 0


def _record(request: Mapping[str, Any], compiled: Compilation, version: int) -> dict[str, Any]:
    return {name: request[name] for name in ("owner", "name", *SUBMITTED)} | {
        "version": version,
        "live": True,
        "fields": list(compiled.fields),
        "program": compiled.text,
        "remarks": list(compiled.remarks),
        "submitted": milliseconds(request["time"]),
    }
