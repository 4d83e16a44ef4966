"""Read alerts: iterate, and what is done is kept."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from inspect import getsource
from textwrap import dedent
from types import TracebackType
from typing import Any, Self

from nightwire.consumers.alert import WINDOW, Dedup, Deduplicator, ReceivedAlert, RecentKeys
from nightwire.consumers.reader.batch import DecodingContext, Unpack
from nightwire.consumers.reader.connection import ReadRequest
from nightwire.consumers.reader.read_loop import BadRecord, ReadPolicy
from nightwire.consumers.reader.record_filter import check_condition
from nightwire.consumers.reader.session import ReaderSession, Stream, TableStream
from nightwire.consumers.reader.tables import Kind, check_table
from nightwire.consumers.reader.unpack import AlertUnpacker, TableUnpacker
from nightwire.consumers.source import AutoGroup, Plan, StartMode
from nightwire.core.congestion import LIMIT
from nightwire.core.datagrams import LITE_HEADER, GroupAddress, parse_group
from nightwire.core.runtime import find_endpoints

REGISTRY_TIMEOUT = 60.0
"""How long a registry that does not answer is asked again. [s]"""

SIZE = 256
"""How many alerts make a batch. [alert]  Of the largest, 300 kB, they take 77 MB."""

Topics = str | Sequence[str] | Callable[[], Sequence[str]]
"""Names of topics, or a function that returns those of now."""

Failure = type[BaseException] | BaseException | TracebackType | None
"""One of the three arguments of ``__exit__``."""


def _never() -> bool:
    return False


class AlertReader:
    """Read alerts: one by one, in batches, or as tables; with `for` or `async for`.

    Without a group a reader sees every partition, begins live and keeps no position.  With one, the
    group's members share the partitions and go on where the group was: an alert, a batch or a table
    counts as done when the next one is asked for, or when the ``with`` block is left without an
    exception.  After a crash what was not done comes again; *dedup* drops what came before in this
    process, and `ReceivedAlert.origin` finds the rest.  A group that was never here begins with the
    oldest alert that Kafka has.

    Iteration ends after *limit* alerts, after *timeout* without one, at the end without *follow*,
    when the *visit* has closed, and never otherwise.  Use it from one thread or one task; under
    `asyncio` it waits and decodes in a thread of its own.

    Args:
        topics: One name, or several; or a function that returns those of now, and is asked twice a
            second.  Of a topic that it names later, all is read where the topic is new, else what
            was written since reading began.
        group: Name of the consumer group.
        member: Name of this member of the group: one that restarts within 45 s gets its partitions
            back, and the others keep theirs.
        bootstrap: Kafka's address; by default ``KAFKA_BOOTSTRAP_SERVERS``, else the running
            embedded stack's.
        registry: URL of the schema registry; by default ``NIGHTWIRE_SCHEMA_REGISTRY``, else the
            stack's.
        since: Begin with what was written so long ago, or at that time; for a group only where it
            was never before.
        last: Begin with the newest so many of each topic, by time, the oldest of them first.
        start: ``"beginning"`` or ``"live"``; by default live, and the beginning for a new group and
            without *follow*.
        visit: Read this visit of a survey alone; while it is open, until it closes.
        follow: Wait for more at the end; without it, stop at what was the end at the beginning.
        limit: Stop after so many alerts.
        timeout: Longest wait for the next alert. [s]
        multicast: ``[SOURCE@]GROUP:PORT`` to which a relay of this LAN sends (`nightwire relay`):
            what is heard there is not read from Kafka, what is lost is, and all is while nothing is
            heard.  Alerts come without stamps and history unless the relay sends them whole; those
            have the header ``lite``, and `full` gives the whole one.  With ``"auto"`` the group is
            that of the smallest channel which covers *where* (`nightwire channel`), and another one
            when that changes; it implies *announce*, so that channels are planned by it.
        slow_link: Read from the directory, by HTTP, as much as the link takes: where alerts get
            older than this, or 10 s, they come without stamps, then without history, then the first
            by *rank* alone; each whole one follows when the link is free.  The header ``level``
            says what came, ``follows`` what came before.  With one topic and a group. [s]
        rank: Which alerts a slow link gets first: ``magnitude``, ``-snr``, …; with ``-`` the
            greatest.
        first: Condition in SQL, as *where*: alerts on which it holds come before all others; or a
            function of Python, or its source, as filters are: those for which it returns the most.
            It has to be one that compiles, since the directory runs none.
        interface: Name or address of the network interface to listen on.
        dedup: Leave out what came before: ``"offset"`` by where it first lay
            (`ReceivedAlert.origin`), ``"alert"`` by survey and id.
        window: How many alerts *dedup* remembers for certain.  A new process remembers nothing.
        survey: The alerts' survey, where neither a header nor the topic names it.
        where: Condition on alerts, in SQL as filters have it (``"magnitude < 19"``): those alone
            are read on which it holds.  It is judged before they are decoded, on what was written,
            whatever *as_version* is; *limit* and *timeout* are about what passes, *last* about what
            is judged.  Damage in what does not pass may not be seen.
        channel: Read, where there is one, a derived channel that covers *where*: the same alerts by
            fewer bytes.
        announce: Tell others what is read here, and by which condition, as long as it is: a record
            in the topic ``subscriptions``.  Where that cannot be, the log says so once; and where
            nothing that is advertised there meets the condition.
        as_version: Read every alert as this version of its schema: ``"11.0"``, an id, or the schema
            itself.
        on_bad: Called with each record that holds no alert, before it counts as done.
        needs_schema: Wait up to a minute for a registry that does not answer, then end with an
            error; without it, for those who look at what comes, a record whose schema nobody gives
            now holds no alert, and the next is read.
        stopped: Asked several times a second whether to stop.
        commit_interval: Time between a group's commits. [s]
        fetch_wait: Let Kafka gather for so long what it sends, up to 8 MiB: fewer fetches, which
            leave more of the machine to others, for a reader that is in no hurry. [s]

    Raises:
        ValueError: Arguments that exclude each other, or a condition that is none: says where.
        NoStackError: No Kafka is named, and none runs here.
    """

    def __init__(
        self,
        topics: Topics,
        *,
        group: str | None = None,
        member: str | None = None,
        bootstrap: str | None = None,
        registry: str | None = None,
        since: timedelta | datetime | None = None,
        last: int | None = None,
        start: StartMode | None = None,
        visit: int | None = None,
        follow: bool = True,
        limit: int | None = None,
        timeout: float | None = None,
        multicast: str | None = None,
        slow_link: bool | float = False,
        rank: str = "magnitude",
        first: str | Callable[..., Any] = "",
        interface: str | None = None,
        dedup: Dedup | None = None,
        window: int = WINDOW,
        survey: str | None = None,
        where: str | None = None,
        channel: bool = True,
        announce: bool = False,
        as_version: int | str | Mapping[str, Any] | None = None,
        on_bad: Callable[[BadRecord], None] | None = None,
        needs_schema: bool = True,
        stopped: Callable[[], bool] = _never,
        commit_interval: float = 1.0,
        fetch_wait: float = 0.0,
    ) -> None:
        choose = topics if callable(topics) else None
        named = topics() if callable(topics) else [topics] if isinstance(topics, str) else topics
        plan = Plan(
            topics=list(dict.fromkeys(named)),
            group=group,
            since=since,
            last=last,
            start=start,
            follow=follow,
            visit=visit,
            member=member,
            dedup=dedup,
            choose=choose,
            multicast=_group(multicast, interface),
            slow_link=(LIMIT if slow_link is True else float(slow_link)) if slow_link else None,
            rank=rank,
            first=first if isinstance(first, str) else dedent(getsource(first)),
        )
        if where is not None:
            check_condition(where, plan.topics, survey)
        endpoints = find_endpoints(bootstrap, registry)
        registry_timeout = REGISTRY_TIMEOUT if endpoints.schema_registry else 0.0
        policy = ReadPolicy(limit, timeout, registry_timeout, stopped, on_bad, needs_schema)
        wanted = where, announce or multicast == "auto", channel, fetch_wait
        request = ReadRequest(plan, endpoints, policy, survey, as_version, commit_interval, *wanted)
        self._session = ReaderSession(request, Deduplicator(dedup, RecentKeys(window)))
        self._alerts: Stream[ReceivedAlert] = Stream(self._session, _one_by_one, size=1, wait=0.0)

    @property
    def count(self) -> int:
        """Alerts handed out."""
        return self._session.counts.count

    @property
    def undecodable(self) -> int:
        """Records that held no alert: logged, given to *on_bad*, and passed over."""
        return self._session.counts.undecodable

    @property
    def duplicates(self) -> int:
        """Alerts that *dedup* left out."""
        return self._session.counts.duplicates

    @property
    def filtered(self) -> int:
        """Alerts that *where* left out, of those that came here."""
        return self._session.counts.filtered

    @property
    def faulted(self) -> int:
        """Alerts that *where* could not be judged on, left out too; the log says once why."""
        return self._session.counts.faulted

    @property
    def expired(self) -> int:
        """Records that Kafka had deleted before they were read."""
        return self._session.expired

    @property
    def way(self) -> str:
        """Where alerts come from now: ``kafka``, ``multicast``, ``multicast GROUP:PORT`` where that
        is chosen, ``channel NAME of TOPIC``, ``memory`` in the process that writes them,
        ``archive`` for what Kafka has forgotten, ``slow link, LEVEL``, or ``both``, where that
        differs by partition.
        """
        return self._session.way

    @property
    def dropped(self) -> Mapping[str, int]:
        """Datagrams of *multicast* that were not believed or not needed, by reason."""
        return self._session.dropped

    def full(self, alert: ReceivedAlert) -> ReceivedAlert:
        """Return *alert* as Kafka has it, where it came without stamps and history; else itself.

        Raises:
            MissingError: Kafka does not have it any more.
            KafkaException: Kafka cannot be reached.
        """
        return self._session.full(alert) if LITE_HEADER in alert.headers else alert

    def batches(self, *, size: int = SIZE, wait: float = 1.0) -> Stream[list[ReceivedAlert]]:
        """Return lists of alerts, none of them empty, for ``for`` or ``async for``.

        Args:
            size: How many at most.
            wait: Longest wait for so many, once the first is there. [s]
        """
        return Stream(self._session, _in_batches, size=size, wait=wait)

    def tables(
        self,
        fields: Sequence[str],
        *,
        to: Kind = "arrow",
        metadata: Sequence[str] = (),
        size: int = SIZE,
        wait: float = 1.0,
    ) -> Stream[Any]:
        """Return tables, a row an alert and a column a field: the fastest way.

        They are for ``for`` and ``async for``.  Where no alert comes there is one, without rows.
        A message is read as far as its last field that was asked for; damage behind that is not
        seen.

        Args:
            fields: Dotted paths (``diaSource.psfFlux``); through an array of records, a column of
                lists.
            to: ``"arrow"`` (`pyarrow.Table`), ``"pandas"`` or ``"polars"``.
            metadata: Columns of where the alerts lay, ahead of the fields: any of topic, partition,
                offset, timestamp, key, survey.
            size: How many rows at most.
            wait: Longest wait for so many, once the first is there. [s]

        Raises:
            ValueError: A name that does not exist or comes twice.
            ModuleNotFoundError: pandas or polars is not installed.
        """
        check_table(fields, metadata, to)
        names, columns = list(fields), list(metadata)

        def factory(context: DecodingContext) -> Unpack[Any]:
            return TableUnpacker(context, names, columns, to)

        return TableStream(self._session, factory, size=size, wait=wait)

    def open(self) -> Self:
        """Connect, and find where to begin; iteration does so by itself.

        Raises:
            TopicError: A topic or a visit does not exist; the message names those that do.
            KafkaException: Kafka cannot be reached.
        """
        self._session.open()
        return self

    def close(self) -> None:
        """Commit what is done, and leave.  What was handed out last is not done."""
        self._session.close(finished=False)

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *failure: Failure) -> None:
        self._session.close(finished=failure[0] is None)

    async def __aenter__(self) -> Self:
        return await self._session.in_thread(self.open)

    async def __aexit__(self, *failure: Failure) -> None:
        await self._session.close_in_thread(finished=failure[0] is None)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ReceivedAlert:
        return next(self._alerts)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedAlert:
        return await anext(self._alerts)


def _group(multicast: str | None, interface: str | None) -> GroupAddress | AutoGroup | None:
    if multicast == "auto":
        return AutoGroup(interface or "")
    return parse_group(multicast, interface) if multicast else None


def _one_by_one(context: DecodingContext) -> Unpack[ReceivedAlert]:
    return AlertUnpacker(context).one


def _in_batches(context: DecodingContext) -> Unpack[list[ReceivedAlert]]:
    return AlertUnpacker(context).all
