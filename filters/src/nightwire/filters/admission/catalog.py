"""The catalog of filters by owner, name and version: the only writer of the topic `filters`."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nightwire.core.catalogues import CatalogueStore
from nightwire.core.kafka import MAX_MESSAGE
from nightwire.filters.admission.answers import MAX_REASON, cut
from nightwire.filters.admission.sources import SourceChecker
from nightwire.filters.admission.text_process import compile_apart
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import Compilation
from nightwire.filters.model.filter_set import FilterRecord, FilterSet, milliseconds, to_filter
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.reading.followers import FilterFollower
from nightwire.schemas import records
from nightwire.schemas.survey_model import MatchName
from nightwire.schemas.topics import FILTERS

SUBMITTED = (
    *("survey", "language", "source", "entry", "cap", "choice", "sources", "output"),
    *("drop", "means", "transform", "behind"),
)
"""Fields of a request that make a filter; two requests equal in them are the same version."""

MAX_RECORD = MAX_MESSAGE - (64 << 10)
"""Largest record of a filter. [byte]"""

MAX_OWNED = 16 << 20
"""Most that one owner's live filters have: every worker holds them. [byte]"""


class Catalog:
    """Filters by owner, name and version.  Safe to use from several threads.

    Args:
        bootstrap: Kafka's address.
        catalogues: Where those are that filters cross-match with; None: none.
    """

    def __init__(self, bootstrap: str, catalogues: CatalogueStore | None = None) -> None:
        self._catalogues = catalogues
        self._sources = SourceChecker(bootstrap)
        self._producer = ControlProducer(bootstrap)
        self._lock = threading.Lock()
        self._follower = FilterFollower(bootstrap)

    def accept(
        self,
        request: Mapping[str, Any],
        compilation: Compilation,
        cost_us: float | None = None,
        before: Callable[[int], object] = lambda _: None,
    ) -> int:
        """Make the filter of a request live; return its version, the same if asked twice.

        Args:
            request: The submission.
            compilation: Its compilation.
            cost_us: CPU time for an alert, as tried. [µs]
            before: Called with the version before anybody can see it.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
            FilterError: It is too large, or its owner's filters are together.
        """
        with self._lock:
            known = self._refreshed()
            owner, name = request["owner"], request["name"]
            version = _same(known, request) or known.newest(owner, name) + 1
            record = _record(request, compilation, version) | {"cost_us": cost_us}
            check_sizes(known, record)
            if known.live_version(owner, name) != version:
                before(version)
                self._write({f"{owner}/{name}/{version}": record, f"{owner}/{name}": record})
            return version

    def complete(self) -> None:
        """Find the facts of the texts of live filters that an earlier engine accepted without.

        Raises:
            DeliveryError: Kafka did not take something.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            for one in known.live():
                record = known.versions[one.owner, one.name, one.version]
                if not record["facts"]:
                    self._complete(record)

    def _complete(self, record: FilterRecord) -> None:
        try:
            self._restore(record)
        except FilterError as error:
            suspended = {**record, "live": False, "suspended": cut(str(error), MAX_REASON)}
            self._write({f"{record['owner']}/{record['name']}": suspended})

    def refusals(self, request: Mapping[str, Any]) -> list[str]:
        """Return the reasons why the filter of *request* may not read its sources.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            return self._sources.refusals(to_filter(request), self._refreshed().live())

    def live(self) -> list[LiveFilter]:
        """Return the live filters.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            return self._refreshed().live()

    def needed(self) -> list[LiveFilter]:
        """Return the versions that judge, or that their owners go back to by a plain command.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            return self._refreshed().needed()

    def forbidden(self) -> dict[LiveFilter, list[str]]:
        """Return the live filters that read what their owners may not, each with the reasons.

        Raises:
            KafkaException: Kafka does not answer.
        """
        live = self.live()
        reasons = self._sources.forbidden(live)
        return {one: reasons[one.key] for one in live if one.key in reasons}

    def unchanged(
        self, request: Mapping[str, Any], is_current: Callable[[LiveFilter], bool] = lambda _: True
    ) -> int:
        """Return the live version if *request* submits the same again, else 0.

        Args:
            request: The submission.
            is_current: Whether a filter would become the same, now.

        Raises:
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            owner, name = request["owner"], request["name"]
            version = known.live_version(owner, name)
            live = known.versions.get((owner, name, version), {})
            same = all(live.get(part) == request[part] for part in SUBMITTED)
            return version if same and is_current(to_filter(live)) else 0

    def enable(self, owner: str, name: str, version: int = 0) -> int:
        """Make a version live that was accepted before; return it, 0 when there is none such.

        Args:
            owner: Its owner.
            name: Its name.
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
            owner: Its owner.
            name: Its name.
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

    def stop(self, owner: str, name: str, version: int | None = None, *, suspended: str = "") -> int:
        """Take a filter out of the live set, until its owner enables it again.

        Returns:
            The version that was live, 0 when none was.

        Args:
            owner: Its owner.
            name: Its name.
            version: The version to stop; None for any that is live.
            suspended: The engine's reason to suspend it; empty where its owner disables it.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            live = known.live_version(owner, name)
            if live and version in (None, live):
                changes = {"version": live, "live": False, "suspended": suspended}
                self._write({f"{owner}/{name}": {**known.versions[owner, name, live], **changes}})
            return live

    def remove(self, owner: str, name: str) -> int:
        """Remove a live, disabled or suspended filter; return the last version that was live.

        Returns:
            0 when there is none such.

        Raises:
            DeliveryError: Kafka did not take it.
            KafkaException: Kafka does not answer.
        """
        with self._lock:
            known = self._refreshed()
            version = known.live_version(owner, name) or _pointed(known, owner, name)
            if version:
                gone = {"version": 0, "live": False, "suspended": ""}
                self._write({f"{owner}/{name}": {**known.versions[owner, name, version], **gone}})
            return version

    def _point(self, known: FilterSet, owner: str, name: str, version: int) -> int:
        """Make *version* the live one, if there is such a version; return it, else 0.

        Raises:
            FilterError: It may not read its sources, its catalogues are gone, or it is too large
                beside the others.
        """
        record = known.versions.get((owner, name, version))
        if record is None:
            return 0
        if known.live_version(owner, name) != version:
            if reasons := self._sources.refusals(to_filter(record), known.live()):
                raise FilterError(*reasons)
            if gone := [*missing_catalogues(to_filter(record), self._catalogues)]:
                raise FilterError(*gone)
            check_sizes(known, record)
            if not record["facts"]:
                self._restore(record)
                return version
            self._write({f"{owner}/{name}": {**record, "live": True, "suspended": ""}})
        return version

    def _restore(self, record: FilterRecord) -> None:
        """Make a version live that was accepted before texts had facts.

        Raises:
            FilterError: Its text is beyond the limits.
        """
        record = {**record, "facts": compile_apart(record).facts, "live": True, "suspended": ""}
        key = f"{record['owner']}/{record['name']}"
        self._write({f"{key}/{record['version']}": record, key: record})

    def _refreshed(self) -> FilterSet:
        self._follower.refresh()
        return self._follower.filters

    def _write(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Write in the order given: a version before the record that makes it live."""
        with self._producer.writer() as writer:
            for key, record in entries.items():
                writer.write(FILTERS, records.FILTER.encode(record), key=key.encode())


def missing_catalogues(one: LiveFilter, there: CatalogueStore | None) -> Iterator[str]:
    """Yield which versions of catalogues a filter was submitted with, and are no longer *there*."""
    for name in map(MatchName.parse, one.text_facts.matches if there else ()):
        if there is not None and name.version not in there.kept(name.catalogue):
            kept = f"catalogue {name.catalogue} is no longer kept in version {name.version}"
            yield f"{kept}, which it needs: submit the filter again, with the one that is there now"


def check_sizes(known: FilterSet, record: FilterRecord) -> None:
    """Check that a filter fits in its record, and its owner's live filters in every worker.

    Raises:
        FilterError: One of them does not.
    """
    if (size := len(records.FILTER.encode(record))) > MAX_RECORD:
        raise FilterError(f"compiled it has {size:,} bytes, limit is {MAX_RECORD:,}: fewer constants")
    key = f"{record['owner']}/{record['name']}"
    others = [one for one in known.live() if one.owner == record["owner"] and one.key != key]
    whole = size + sum(len(one.source) + len(one.program) + len(one.facts) for one in others)
    if whole > MAX_OWNED:
        text = f"live filters would have {whole:,} bytes, limit is {MAX_OWNED:,}: disable one"
        raise FilterError(f"{record['owner']}'s {text}")


def _pointed(known: FilterSet, owner: str, name: str) -> int:
    """Return the version that is live, or was until it was stopped; 0 when there is none."""
    pointer = known.pointers.get((owner, name))
    return int(pointer["version"]) if pointer else 0


def _same(known: FilterSet, request: Mapping[str, Any]) -> int:
    """Return the version that this very request has made already, or 0."""
    owner, name = request["owner"], request["name"]
    version = known.newest(owner, name)
    record = known.versions.get((owner, name, version))
    if record is None or milliseconds(record["submitted"]) != milliseconds(request["time"]):
        return 0
    return version if all(record[part] == request[part] for part in SUBMITTED) else 0


def _record(request: Mapping[str, Any], compilation: Compilation, version: int) -> dict[str, Any]:
    return {name: request[name] for name in ("owner", "name", *SUBMITTED)} | {
        "version": version,
        "live": True,
        "fields": list(compilation.fields),
        "program": compilation.text,
        "facts": compilation.facts,
        "remarks": list(compilation.remarks),
        "submitted": milliseconds(request["time"]),
    }
