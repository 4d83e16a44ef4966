"""The pipeline's status: accounts, lag, filters, dead letters, streams, gateways.

Its sources are those of the commands: Kafka, the directory's process, gateways' status pages.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from confluent_kafka import KafkaException

from nightwire.consumers.admin import STAGE, DeadLetter, DeadLetterError, DeadLetterStore, SentBack
from nightwire.consumers.source import TopicError
from nightwire.core.accounting import StageTotal, discrepancies, filters_together, lag, read_accounts, totals
from nightwire.core.kafka import admin, end_offsets_at, error_text, read_to_end
from nightwire.core.presence import ask_directory, request
from nightwire.core.runtime import Endpoints, site_name
from nightwire.portal.filters import Owner
from nightwire.schemas import MendableError
from nightwire.schemas.records import SEEN
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.topics import ACCOUNTS, DEAD_LETTERS, DIRECTORY, seen

log = logging.getLogger("nightwire.portal")

MAX_AGE = 5.0
"""Age at which an answer is asked for anew. [s]"""
TIMEOUT = 4.0
"""Longest time that a page waits for new answers, before it shows the last ones. [s]"""
MAX_LETTERS = 50
"""Newest dead letters that are shown."""
GATEWAYS = "SELECT endpoints FROM processes WHERE name = 'gateway' AND state <> 'gone' AND site = '{}'"
SEEN_PREFIX = seen("o").removesuffix("o")
REQUIRED_TOPIC = {
    "accounts": ACCOUNTS,
    "filters": "",  # each by its owner's topic
    "letters": DEAD_LETTERS,
    "streams": DIRECTORY,
    "gateways": DIRECTORY,
}
"""The topic that a user must be allowed to read, for each answer."""


@dataclass(frozen=True)
class AccountSummary:
    """What became of the records that each stage read.

    Attributes:
        stages: Totals, of those filters together that add up.
        lags: Records that each stage has not accounted for yet.
        discrepancies: Offsets at which in is not out.
        replayed: Numbers of the dead letters that were replayed.
    """

    stages: list[StageTotal]
    lags: Mapping[str, int]
    discrepancies: list[str]
    replayed: set[int]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON has it, without the replayed."""
        stages = [{**vars(one), "lag": self.lags.get(one.stage)} for one in self.stages]
        return {"stages": stages, "discrepancies": self.discrepancies}


class CachedQuery:
    """A slow query, run in a thread, and the last answer to it.

    Args:
        ask: Runs the query.
    """

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask, self._lock, self._asked_at = ask, Lock(), float("-inf")
        self._thread: Thread | None = None
        self._answer: Any = None
        self._why = ""

    def start(self) -> None:
        """Run the query, unless it runs already or its answer is fresh."""
        with self._lock:
            if self._thread is None and time.monotonic() - self._asked_at > MAX_AGE:
                self._thread = Thread(target=self._run, name="portal-query", daemon=True)
                self._thread.start()

    def answer(self, timeout: float) -> tuple[Any, str]:
        """Return the last answer, and why it is old or None; empty where it is fresh.

        Waits *timeout* [s] for a new one; not again after a first time in vain.
        """
        thread = self._thread
        if thread is not None and not self._why:
            thread.join(timeout)
            if thread.is_alive():
                self._why = "no answer for some seconds"
        return self._answer, self._why

    def _run(self) -> None:
        try:
            self._answer, self._why = self._ask(), ""
        except KafkaException as error:
            self._why = f"Kafka: {error_text(error)}"
        except MendableError as error:
            self._why = str(error)
        except Exception as error:  # whatever it is: the page shows it
            log.exception("a query of the pipeline's status")
            self._why = f"{type(error).__name__}: {error}"
        finally:
            self._asked_at, self._thread = time.monotonic(), None


class PipelineStatus:
    """Answers about the pipeline's status.  Safe to use from several threads.

    Args:
        where: The site's addresses.

    Attributes:
        directory: URL of the directory's page, which draws the streams; None: unknown.
    """

    TOPICS = frozenset(REQUIRED_TOPIC.values()) - {""}

    def __init__(self, where: Endpoints) -> None:
        self._where, self._store = where, DeadLetterStore(where.kafka)
        self.directory = where.public.get("directory") or where.directory
        queries = (self._accounts, self._filters, self._letters, self._streams, self._gateways)
        self._replaying = Lock()
        self._queries = {name: CachedQuery(ask) for name, ask in zip(REQUIRED_TOPIC, queries, strict=True)}

    def answers(self, visible: Collection[str]) -> dict[str, tuple[Any, str]]:
        """Return the answers to a user who reads *visible*, each as of `CachedQuery.answer`."""
        asked = {name: one for name, one in self._queries.items() if REQUIRED_TOPIC[name] in {"", *visible}}
        for one in asked.values():
            one.start()
        until = time.monotonic() + TIMEOUT
        found = {name: one.answer(max(0.0, until - time.monotonic())) for name, one in asked.items()}
        filters, why = found["filters"]
        return found | {"filters": ([one for one in filters or () if seen(one["owner"]) in visible], why)}

    def replay(self, operator: Owner, number: int, *, alike: bool) -> SentBack:
        """Replay a dead letter, or all of its reason, as *operator*; one request at a time.

        Raises:
            RefusedError: There is no such letter, Kafka refuses, or another replay is under way.
        """
        if not self._replaying.acquire(blocking=False):
            raise RefusedError(409, "dead letters are being replayed just now: look again, then decide")
        try:
            return operator.ask(DeadLetterStore(operator.bootstrap).send_back, number, alike=alike)
        except (DeadLetterError, TopicError) as error:
            raise RefusedError(404, str(error)) from error
        finally:
            self._replaying.release()

    def _accounts(self) -> AccountSummary:
        accounts = read_accounts(self._where.kafka)
        topics = admin(self._where.kafka).list_topics(timeout=10).topics  # a visit is a source and none
        ends = end_offsets_at(self._where.kafka, sorted({one.source for one in accounts} & topics.keys()))
        replayed = {account.first for account in accounts if account.stage == STAGE}
        stages = filters_together(totals(accounts))
        return AccountSummary(stages, lag(accounts, ends), discrepancies(accounts), replayed)

    def _filters(self) -> list[dict[str, Any]]:
        """Return the engine's last statistics of each filter, those that are behind first."""
        known = admin(self._where.kafka).list_topics(timeout=10).topics
        topics = [name for name in known if name.startswith(SEEN_PREFIX)]
        last = {(one.topic(), one.key()): one.value() for one in read_to_end(self._where.kafka, topics)}
        found = [SEEN.decode(value) for value in last.values() if value is not None]
        return sorted(found, key=lambda one: (-(one["behind_s"] or 0), one["owner"], one["name"]))

    def _letters(self) -> list[DeadLetter]:
        return self._store.newest(MAX_LETTERS)[::-1]

    def _streams(self) -> Any:
        """Return the directory's graph: writers and readers of each stream."""
        return ask_directory(self._where, "GET", "/graph.json").json()

    def _gateways(self) -> list[dict[str, Any]]:
        """Return the status page of each gateway of this site."""
        sql = GATEWAYS.format(site_name().replace("'", "''"))
        rows = ask_directory(self._where, "POST", "/query", json={"sql": sql}).json()
        pages = [json.loads(row["endpoints"])["metrics"] for row in rows]
        return [request("GET", f"http://{page}/status.json").json() for page in pages]
