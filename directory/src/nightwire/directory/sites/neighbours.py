"""Other sites: found, checked, followed, and listed for others to find."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError, cluster_id
from nightwire.core.presence import entry, entry_key
from nightwire.core.runtime import Backoff
from nightwire.directory.following import Follower, write
from nightwire.directory.model import QueryError, SiteRows, View
from nightwire.directory.sites.address import SiteAddress, is_address
from nightwire.directory.sites.identity import Introduction, SiteRefusedError, check_claim, introduce
from nightwire.schemas.records import ENTRY

log = logging.getLogger("nightwire.directory")

LOOK = 2.0
"""Time between two looks for sites. [s]"""
SOON, LATER = 5.0, 60.0
"""Longest time until a silent site is asked again: one that was chosen, and one learnt of. [s]"""
MOST = 300
"""Most sites that are followed.  Each costs ten threads (eight are librdkafka's) and 1 MB."""
AT_ONCE = 16
"""Most sites learnt of that are asked at once who they are."""
ROOM = 16 << 20
"""Most that another site's rows may hold. [byte]"""
LISTED = """
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
    """When a Kafka is asked again who it is, and what was said of the last time."""

    pause: Backoff
    due: float = 0.0
    said: str = ""


@dataclass
class Neighbour:
    """A site that is followed.

    Attributes:
        where: Its Kafka.
        cluster: That Kafka's id.
        public: Its address, as it tells others.
        follower: Keeps its rows.
        written: Whether our log was told of it.
        listed: Whether our log told us of it.
    """

    where: SiteAddress
    cluster: str
    public: str
    follower: Follower
    written: bool = False
    listed: bool = False


class Neighbours:
    """Follows the sites that our operator chose, and those that they list, or we did before.

    Each is listed in our own log, bound to its Kafka: so the binding lasts, and others learn of it.

    Args:
        own: Follows our own site.
        view: Where rows are written.
        bootstrap: Our own Kafka.
        chosen: What our operator chose.
        most: Most sites that are followed.

    Attributes:
        refused: Kafkas that were refused: a name of another, several names, one site too many.
    """

    def __init__(
        self, own: Follower, view: View, bootstrap: str, chosen: Sequence[SiteAddress], most: int = MOST
    ) -> None:
        self._own, self._view, self._bootstrap, self._chosen, self._most = own, view, bootstrap, chosen, most
        self.refused = 0
        self._cluster, self._followed = "", dict[str, Neighbour]()
        self._attempts, self._listed_before = dict[SiteAddress, Attempt](), dict[str, str]()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="directory-sites", daemon=True)

    def start(self) -> None:
        """Begin to look for sites."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following."""
        self._leave.set()
        self._thread.join(LOOK)
        followers = [one.follower for one in self._followed.values()]
        for follower in followers:
            follower.leave()
        for follower in followers:
            follower.stop(LOOK)

    def _look_on(self) -> None:
        while not self._leave.wait(LOOK):
            self._cluster = self._cluster or cluster_id(self._bootstrap) or ""
            try:
                if self._cluster and (listed := self._listed()) is not None:
                    self._ask_again(listed)
                    self._keep_listed(listed)
                    for where, heard in introductions(self._due()).items():
                        self._judge(where, heard, listed)
                    self._list()
            except QueryError as error:
                log.warning("no sites are looked for: %s", error)

    def _listed(self) -> dict[str, str] | None:
        """Return the Kafka of each name by our own log; None while that is being read."""
        before = self._own.ready
        found = dict(self._view.query(LISTED, self._own.rows.site).rows)
        return found if before and self._own.ready else None

    def _ask_again(self, listed: dict[str, str]) -> None:
        """Ask everybody at once again where somebody has changed what is bound."""
        if not self._listed_before.items() <= listed.items():
            for attempt in self._attempts.values():
                attempt.due = 0.0
        self._listed_before = listed

    def _keep_listed(self, listed: Mapping[str, str]) -> None:
        """Leave whom somebody took out of our log."""
        for name, one in list(self._followed.items()):
            if listed.get(name) == one.cluster:
                one.listed = True
            elif one.listed:
                log.info("the site %s was taken out", name)
                self._drop(name)

    def _list(self) -> None:
        """Write who is followed to our log, once."""
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
        one.follower.stop(LOOK)
        one.follower.rows.remove()

    def _due(self) -> list[SiteAddress]:
        """Return the Kafkas to be asked now who they are: the chosen, and some learnt of."""
        followed = {one.where for one in self._followed.values()}
        known = {self._own.rows.site, *self._followed, *(one.name for one in self._chosen)}
        addresses = {one.address for one in self._chosen}
        learnt = [
            SiteAddress(address, name)
            for address, name in self._view.query(LEARNT).rows
            if name not in known and address not in addresses and is_address(address)
            if len(self._followed) < self._most
        ]
        before = self._attempts
        self._attempts = {
            where: before.get(where) or Attempt(Backoff(LOOK, SOON if where in self._chosen else LATER))
            for where in (*self._chosen, *learnt)
        }
        now = time.monotonic()
        due = [one for one in self._attempts if one not in followed and self._attempts[one].due <= now]
        chosen = [one for one in due if one in self._chosen]
        return chosen + [one for one in due if one not in self._chosen][:AT_ONCE]

    def _judge(
        self, where: SiteAddress, heard: Introduction | KafkaException, listed: Mapping[str, str]
    ) -> None:
        """Follow whom was *heard* at *where*; or note and say, once, why not."""
        attempt, said = self._attempts[where], ""
        try:
            if isinstance(heard, KafkaException):
                said = f"it does not answer: {heard.args[0].str()}"
            elif heard.cluster != self._cluster:
                self._follow(where, heard, listed)
        except SiteRefusedError as error:
            said = f"it is refused: {error}"
            self.refused += said != attempt.said
        if said and said != attempt.said:
            log.warning("the site at %s%s: %s", where.address, f" ({where.name})" * bool(where.name), said)
        pause = attempt.pause.next() if isinstance(heard, KafkaException) else LATER
        attempt.said, attempt.due = said, time.monotonic() + pause

    def _follow(self, where: SiteAddress, found: Introduction, listed: Mapping[str, str]) -> None:
        """Follow the site at *where*, unless it is followed.

        Raises:
            SiteRefusedError: It is not who it says it is, or one too many.
        """
        bound = {one: followed.cluster for one, followed in self._followed.items()}
        bound |= {**listed, self._own.rows.site: self._cluster}
        known = next((one for one, held in bound.items() if held == found.cluster), "")
        name = found.name(where.name or known)
        check_claim(name, found.cluster, bound)
        if name in self._followed:
            return
        if len(self._followed) >= self._most:
            raise SiteRefusedError(f"{self._most} sites are followed already")
        rows = SiteRows(self._view, name, where.address, found.endpoint(name, "schema_registry"), room=ROOM)
        follower = Follower(where.address, rows, client=where.client, cluster=found.cluster)
        follower.start()
        public = found.endpoint(name, "kafka")
        public = public if is_address(public) else where.address
        self._followed[name] = Neighbour(where, found.cluster, public, follower)
        log.info("following the site %s at %s", name, where.address)


def introductions(asked: Sequence[SiteAddress]) -> dict[SiteAddress, Introduction | KafkaException]:
    """Return what each of *asked* says of itself, or why it says nothing; all are asked at once."""
    heard = dict[SiteAddress, Introduction | KafkaException]()

    def ask(where: SiteAddress) -> None:
        try:
            heard[where] = introduce(where)
        except KafkaException as error:
            heard[where] = error

    threads = [threading.Thread(target=ask, args=(where,), daemon=True) for where in asked]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return heard
