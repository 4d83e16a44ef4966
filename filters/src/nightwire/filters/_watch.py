"""Looking after filters: tells owners what happens, and suspends what is too slow or always fails."""

import logging

from confluent_kafka import KafkaException

from nightwire.core import kafka
from nightwire.core.clock import now_ms
from nightwire.core.kafka import DeliveryError, Writer, ensure_topics
from nightwire.filters._catalog import Catalog
from nightwire.filters._decision import Decision
from nightwire.filters._metrics import Metrics
from nightwire.filters._notices import Notice, Record, fault_notices, live_notices, suspensions
from nightwire.filters._state import State
from nightwire.schemas import records
from nightwire.schemas.topics import answers, settings

log = logging.getLogger("nightwire.filters")


class Watch:
    """Looks at what was decided, batch by batch; trouble here stops nothing.

    Args:
        bootstrap: Kafka's address.
        catalog: Where a filter is taken out.
        metrics: What to count.
        state: Says which filters were live before this process.
    """

    def __init__(self, bootstrap: str, catalog: Catalog, metrics: Metrics, state: State) -> None:
        self._bootstrap, self._catalog, self._metrics = bootstrap, catalog, metrics
        before = state.decision(state.newest_decision())
        self._record = Record(live=set(before.judges) if before else set())

    def look(self, number: int, decision: Decision) -> None:
        """Tell the owners what batch *number* says of their filters, and suspend the bad."""
        news = [
            *live_notices(self._record, number, decision),
            *fault_notices(self._record, number, decision),
        ]
        bad = list(suspensions(self._record, decision))
        try:
            for one in bad:
                self._suspend(one)
            self._tell([*news, *bad])
        except (KafkaException, DeliveryError, TimeoutError) as error:
            log.warning("owners were not told: %s", error)

    def _suspend(self, one: Notice) -> None:
        owner, _, name = one.key.partition("/")
        self._catalog.stop(owner, name, one.version, suspended=one.text.removeprefix("suspended: "))
        self._metrics.suspended.labels(one.key).inc()
        log.warning("filter %s version %d is %s", one.key, one.version, one.text)

    def _tell(self, news: list[Notice]) -> None:
        if not news:
            return
        owners = {one.key.partition("/")[0] for one in news}
        ensure_topics(self._bootstrap, [settings(answers(owner)) for owner in sorted(owners)])
        writer = Writer(kafka.producer(self._bootstrap))
        for one in news:
            log.info("filter %s version %d: %s", one.key, one.version, one.text)
            owner, _, name = one.key.partition("/")
            notice = {
                "request": "", "accepted": one.good, "owner": owner, "name": name,
                "version": one.version, "reasons": [one.text], "time": now_ms(),
            }  # fmt: skip
            writer.write(answers(owner), records.ANSWER.encode(notice), key=name.encode())
        writer.flush()
