"""Discovery of other sites: identified, followed, and listed for others to find."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError, cluster_id, error_text
from nightwire.core.presence import entry, entry_key
from nightwire.core.runtime import Backoff
from nightwire.directory.ingest import Follower, write
from nightwire.directory.model import QueryError, SiteRows, View
from nightwire.directory.sites.address import SiteAddress, is_address
from nightwire.directory.sites.identity import ClusterIdentity, SiteRefusedError, check_claim, identify
from nightwire.schemas.records import ENTRY

log = logging.getLogger("nightwire.directory")

INTERVAL = 2.0
"""Time between two searches for sites. [s]"""
RETRY_CONFIGURED, RETRY_LEARNT = 5.0, 60.0
"""Longest time until a silent site is asked again: configured, learnt of. [s]"""
MAX_SITES = 300
"""Most sites that are followed.  Each costs ten threads (eight are librdkafka's) and 1 MB."""
MAX_PARALLEL = 16
"""Most sites learnt of that are identified at once."""
MAX_SITE_BYTES = 16 << 20
"""Most that another site's rows may hold. [byte]"""
NEIGHBOURS = """
SELECT name, coalesce(capabilities ->> '$.cluster', '') FROM entries
WHERE site = ? AND kind = 'neighbour' LIMIT 5000
"""
"""Which Kafka each name belongs to, by our own log."""
LEARNT = """
SELECT endpoints ->> '$.kafka' AS kafka, name FROM entries
WHERE kind = 'neighbour' AND length(kafka) <= 1000
ORDER BY row_number() OVER (PARTITION BY site ORDER BY name) LIMIT 5000
"""
"""Addresses and names that sites list: the first of each site, then the second of each, …"""


@dataclass
class Attempt:
    """When a Kafka is asked again who it is, and why the last attempt failed."""

    pause: Backoff
    due: float = 0.0
    message: str = ""


@dataclass
class FollowedSite:
    """A site that is followed.

    Attributes:
        where: Its Kafka.
        cluster: That Kafka's id.
        public: Its Kafka's public address.
        follower: Keeps its rows.
        written: Whether it was written to our log.
        listed: Whether it was read from our log.
    """

    where: SiteAddress
    cluster: str
    public: str
    follower: Follower
    written: bool = False
    listed: bool = False


class SiteDiscovery:
    """Follows the configured sites, those that these list, and those that were followed before.

    Each is listed in our own log, bound to its Kafka: so the binding lasts, and others learn of it.

    Args:
        own: Follows our own site.
        view: Where rows are written.
        bootstrap: Our own Kafka.
        configured: The operator's ``--site``.
        max_sites: Most sites that are followed.

    Attributes:
        refused: Kafkas that were refused: a name of another, several names, one site too many.
    """

    def __init__(
        self, own: Follower, view: View, bootstrap: str, configured: Sequence[SiteAddress], max_sites: int
    ) -> None:
        self._own, self._view, self._bootstrap = own, view, bootstrap
        self._configured, self._max_sites = configured, max_sites
        self.refused = 0
        self._cluster, self._followed = "", dict[str, FollowedSite]()
        self._attempts, self._previously_listed = dict[SiteAddress, Attempt](), dict[str, str]()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="directory-sites", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following."""
        self._stopping.set()
        self._thread.join(INTERVAL)
        followers = [one.follower for one in self._followed.values()]
        for follower in followers:
            follower.request_stop()
        for follower in followers:
            follower.stop(INTERVAL)

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL):
            self._cluster = self._cluster or cluster_id(self._bootstrap) or ""
            try:
                if self._cluster and (listed := self._listed()) is not None:
                    self._retry_all_if_changed(listed)
                    self._drop_unlisted(listed)
                    for where, result in identify_all(self._due()).items():
                        self._handle(where, result, listed)
                    self._write_followed()
            except QueryError as error:
                log.warning("no sites are looked for: %s", error)

    def _listed(self) -> dict[str, str] | None:
        """Return the Kafka of each name by our own log; None while that is being read."""
        before = self._own.ready
        found = dict(self._view.query(NEIGHBOURS, self._own.rows.site).rows)
        return found if before and self._own.ready else None

    def _retry_all_if_changed(self, listed: dict[str, str]) -> None:
        """Make all attempts due where the bindings of names have changed."""
        if not self._previously_listed.items() <= listed.items():
            for attempt in self._attempts.values():
                attempt.due = 0.0
        self._previously_listed = listed

    def _drop_unlisted(self, listed: Mapping[str, str]) -> None:
        """Stop following sites that were deleted from our log."""
        for name, one in list(self._followed.items()):
            if listed.get(name) == one.cluster:
                one.listed = True
            elif one.listed:
                log.info("the site %s was taken out", name)
                self._drop(name)

    def _write_followed(self) -> None:
        """Write the followed sites to our log, each once."""
        new = {name: one for name, one in self._followed.items() if not one.written}
        entries = [
            entry("neighbour", name, endpoints={"kafka": one.public}, capabilities={"cluster": one.cluster})
            for name, one in new.items()
        ]
        try:
            write(self._bootstrap, {entry_key(found): ENTRY.encode(found) for found in entries})
        except DeliveryError as error:
            log.warning("%d sites are not listed yet: %s", len(new), error)
            return
        for one in new.values():
            one.written = True

    def _drop(self, name: str) -> None:
        one = self._followed.pop(name)
        self._attempts.pop(one.where, None)
        one.follower.stop(INTERVAL)
        one.follower.rows.remove()

    def _due(self) -> list[SiteAddress]:
        """Return the Kafkas whose identity is due: the configured, and some learnt of."""
        followed = {one.where for one in self._followed.values()}
        known = {self._own.rows.site, *self._followed, *(one.name for one in self._configured)}
        addresses = {one.address for one in self._configured}
        learnt = [
            SiteAddress(address, name)
            for address, name in self._view.query(LEARNT).rows
            if name not in known and address not in addresses and is_address(address)
            if len(self._followed) < self._max_sites
        ]
        self._attempts = {
            where: self._attempts.get(where) or Attempt(Backoff(INTERVAL, longest))
            for sites, longest in ((self._configured, RETRY_CONFIGURED), (learnt, RETRY_LEARNT))
            for where in sites
        }
        now = time.monotonic()
        due = [one for one in self._attempts if one not in followed and self._attempts[one].due <= now]
        configured = [one for one in due if one in self._configured]
        return configured + [one for one in due if one not in self._configured][:MAX_PARALLEL]

    def _handle(
        self, where: SiteAddress, result: ClusterIdentity | KafkaException, listed: Mapping[str, str]
    ) -> None:
        """Follow the site at *where*; or note and log, once, why not."""
        attempt, message = self._attempts[where], ""
        try:
            if isinstance(result, KafkaException):
                message = f"it does not answer: {error_text(result)}"
            elif result.cluster != self._cluster:
                self._follow(where, result, listed)
        except SiteRefusedError as error:
            message = f"it is refused: {error}"
            self.refused += message != attempt.message
        if message and message != attempt.message:
            log.warning("the site at %s%s: %s", where.address, f" ({where.name})" * bool(where.name), message)
        pause = attempt.pause.next() if isinstance(result, KafkaException) else RETRY_LEARNT
        attempt.message, attempt.due = message, time.monotonic() + pause

    def _follow(self, where: SiteAddress, found: ClusterIdentity, listed: Mapping[str, str]) -> None:
        """Follow the site at *where*, unless it is followed.

        Raises:
            SiteRefusedError: Its name belongs to another Kafka, or it is one too many.
        """
        bound = {one: followed.cluster for one, followed in self._followed.items()}
        bound |= {**listed, self._own.rows.site: self._cluster}
        known = next((one for one, held in bound.items() if held == found.cluster), "")
        name = found.resolve_name(where.name or known)
        check_claim(name, found.cluster, bound)
        if name in self._followed:
            return
        if len(self._followed) >= self._max_sites:
            raise SiteRefusedError(f"{self._max_sites} sites are followed already")
        registry = found.endpoint(name, "schema_registry")
        rows = SiteRows(self._view, name, where.address, registry, max_bytes=MAX_SITE_BYTES)
        follower = Follower(where.address, rows, client=where.client, cluster=found.cluster)
        follower.start()
        public = found.endpoint(name, "kafka")
        public = public if is_address(public) else where.address
        self._followed[name] = FollowedSite(where, found.cluster, public, follower)
        log.info("following the site %s at %s", name, where.address)


def identify_all(asked: Sequence[SiteAddress]) -> dict[SiteAddress, ClusterIdentity | KafkaException]:
    """Return the identity of each of *asked*, or why there is none; all are asked at once."""
    result = dict[SiteAddress, ClusterIdentity | KafkaException]()

    def ask(where: SiteAddress) -> None:
        try:
            result[where] = identify(where)
        except KafkaException as error:
            result[where] = error

    threads = [threading.Thread(target=ask, args=(where,), daemon=True) for where in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return result
