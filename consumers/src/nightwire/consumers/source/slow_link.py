"""Records of a group over a slow link: from a directory, which sends as much as the link takes."""

import email
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from nightwire.consumers.source.plan import Plan
from nightwire.consumers.source.record_source import RecordSource, TopicError, position_of
from nightwire.core.kafka import TopicPartition
from nightwire.core.presence import message_of, whom_to_trust
from nightwire.core.runtime import LogLimiter

log = logging.getLogger("nightwire.consumers")

TIMEOUT = 120.0
"""Longest silence of a link. [s]"""
POLL = 0.2
"""How long a directory waits for a record before it answers that there is none. [s]"""
REFUSED = frozenset({400, 401, 403, 404})
"""Answers of HTTP after which asking again does not help."""


class SlowLinkSource(RecordSource):
    """Asks a directory for the next records when all of the last were done, which says so.

    Args:
        url: The directory's.
        plan: What to read.
        login: Name and password at Kafka; None where nobody is asked.
    """

    def __init__(self, url: str, plan: Plan, login: tuple[str, str] | None = None) -> None:
        self._plan, self._backlog = plan, deque[Message]()
        self.expired, self._level, self._idle = 0, "full", False
        verify = whom_to_trust(url, login)
        self._http = httpx.Client(base_url=url, auth=login, timeout=TIMEOUT, verify=verify, trust_env=False)
        self._undone: set[tuple[TopicPartition, int]] = set()
        self._unsaid = False
        self._limiter = LogLimiter()
        asked = {"group": plan.group, "member": plan.member or "", "as": "raw", "timeout": POLL}
        slow = {"slow": plan.slow_link, "rank": plan.rank, "first": plan.first, "bytes": 1 << 20}
        (topic,) = plan.topics
        self._question = str(httpx.URL(f"/topics/{topic}/records", params={**asked, **slow}))

    def open(self) -> None:
        """Do nothing: the first question opens it."""

    def take(self, most: int, timeout: float) -> list[Message]:
        """Return the next records; none as long as some of the last answer are not done.

        Raises:
            TopicError: The directory, or its Kafka, refuses.
        """
        if not self._backlog and not self._undone:
            self._ask(timeout)
        return [self._backlog.popleft() for _ in range(min(most, len(self._backlog)))]

    @property
    def blocked(self) -> bool:
        """Whether nothing comes before what was taken is done."""
        return bool(self._undone) and not self._backlog

    @property
    def way(self) -> str:
        """How much of alerts comes."""
        return f"slow link, {self._level}"

    @property
    def at_end(self) -> bool:
        """Whether nothing waits, and nothing is owed."""
        return self._idle and not self._backlog

    def mark_done(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Note that the caller has finished with what lies before these *offsets*."""
        self._undone = {one for one in self._undone if one[1] >= offsets.get(one[0], 0)}

    def commit(self) -> None:
        """Say what of the last answer is done."""
        if not self._unsaid:
            return
        url = httpx.URL(self._question).copy_merge_params(self._done())
        try:
            answer = self._http.post(url.copy_with(path=f"{url.path.removesuffix('/records')}/commit"))
        except httpx.HTTPError as error:
            log.warning("the last alerts will come again: %s", error)
            return
        if answer.is_error:
            log.warning("the last alerts may come again: %s", message_of(answer))
        self._unsaid = bool(self._undone)

    def close(self) -> None:
        """Leave the directory."""
        self.commit()
        self._http.close()

    def _done(self) -> Mapping[str, str]:
        """Return what acknowledges the part of the last answer that is done."""
        said = httpx.URL(self._question).params
        after = dict(one.split(":") for one in said.get("after", "").split(",") if one)
        following = {*_offsets(said.get("paid", ""))}
        undone = {(where[1], offset) for where, offset in self._undone}
        for partition, offset in sorted(undone - following, reverse=True):
            after[str(partition)] = str(offset)
        paid = (f"{partition}:{offset}-{offset}" for partition, offset in sorted(following - undone))
        return {"after": ",".join(map(":".join, after.items())), "paid": ",".join(paid)}

    def _ask(self, timeout: float) -> None:
        """Get the next answer; wait for *timeout* where there is none. [s]"""
        try:
            answer = self._http.get(self._question)
            if answer.status_code in REFUSED:
                raise TopicError(message_of(answer))
            answer.raise_for_status()
        except httpx.HTTPError as error:
            if self._limiter.allows():
                log.warning("waiting for the directory: %s", error)
            time.sleep(timeout)
            return
        self._question = answer.links["next"]["url"]
        self._level = answer.headers.get("Nightwire-Level", "full")
        self._note_expired(answer.headers.get("Nightwire-Expired", ""))
        messages = [*_messages(answer)]
        at_end = "Nightwire-At-End" in answer.headers and answer.headers["Nightwire-Owed"] == "0"
        self._idle = at_end and not messages
        self._backlog.extend(messages)
        self._undone = {position_of(one) for one in messages}
        self._unsaid = bool(messages)

    def _note_expired(self, spans: str) -> None:
        for span in filter(None, spans.split(",")):
            first, _, last = span.partition(":")[2].partition("-")
            self.expired += int(last) - int(first) + 1
            log.error("%s: %s expired before all of it was sent", self._plan.topics[0], span)


def _offsets(spans: str) -> Iterator[tuple[int, int]]:
    """Yield partition and offset of all in *spans*, ``PARTITION:FIRST-LAST,…``."""
    for span in filter(None, spans.split(",")):
        partition, first, last = map(int, span.replace("-", ":").split(":"))
        yield from ((partition, offset) for offset in range(first, last + 1))


def _messages(answer: httpx.Response) -> Iterator[Message]:
    """Yield the records in an answer of the form ``multipart/mixed``."""
    if not answer.content:
        return
    head = f"Content-Type: {answer.headers['Content-Type']}\r\n\r\n".encode()
    parts: Any = email.message_from_bytes(head + answer.content).get_payload()
    for part in parts:
        said = {name.removeprefix("Nightwire-"): text for name, text in part.items()}
        pairs = (pair.partition("=") for pair in said.get("Headers", "").split("&") if pair)
        yield Message(
            topic=said["Topic"],
            partition=int(said["Partition"]),
            offset=int(said["Offset"]),
            key=unquote_to_bytes(said["Key"]) if "Key" in said else None,
            value=None if "Tombstone" in said else part.get_payload(decode=True),
            headers=[(unquote_to_bytes(name).decode(), unquote_to_bytes(text)) for name, _, text in pairs],
            timestamp=(TIMESTAMP_CREATE_TIME, int(said["Timestamp"])),
        )
