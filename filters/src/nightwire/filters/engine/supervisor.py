"""Supervision of filters: notices to owners, and suspension of bad filters."""

import logging
from collections.abc import Sequence

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError, TopicPartition
from nightwire.core.runtime import now_ms
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.decision.backfill_decision import live_from
from nightwire.filters.decision.backfill_jobs import BackfillJobs
from nightwire.filters.decision.decision import Decision
from nightwire.filters.decision.engine_state import EngineState
from nightwire.filters.decision.notices import Notice, NoticeState, fault_notices, live_notices, suspensions
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.model.offsets import positions
from nightwire.filters.stats.metrics import Metrics
from nightwire.schemas import records
from nightwire.schemas.topics import answers

log = logging.getLogger("nightwire.filters")


class FilterSupervisor:
    """Looks at the decisions, batch by batch; trouble here stops nothing.

    Args:
        bootstrap: Kafka's address.
        catalog: Takes out a suspended filter.
        metrics: What to count.
        state: Says which filters were live before this process.
    """

    def __init__(self, bootstrap: str, catalog: Catalog, metrics: Metrics, state: EngineState) -> None:
        self._control, self._catalog, self._metrics = ControlProducer(bootstrap), catalog, metrics
        self._state, self._jobs = state, BackfillJobs(state.root)
        # a batch that is done again is looked at again
        before = state.decision(state.newest_commit())
        self._notices = NoticeState(live=set(before.versions) if before else set())

    def observe(self, number: int, decision: Decision) -> None:
        """Send the notices of batch *number* to owners, and suspend bad filters."""
        self._begin_backfills(number, decision)
        notices = [
            *live_notices(self._notices, number, decision),
            *fault_notices(self._notices, number, decision),
        ]
        bad = list(suspensions(self._notices, number, decision))
        try:
            for one in bad:
                suspend(self._catalog, self._metrics, one)
            send_notices(self._control, [*notices, *bad])
        except (KafkaException, DeliveryError, TimeoutError) as error:
            log.warning("owners were not told: %s", error)

    def _begin_backfills(self, number: int, decision: Decision) -> None:
        """Tell the backfills of filters that were not live before where they end."""
        for index, filter_version in enumerate(decision.versions):
            if filter_version not in self._notices.live and self._jobs.waits(filter_version):
                self._jobs.begin(
                    filter_version, live_from(index, batch_start(self._state, number), decision.counts)
                )


def suspend(catalog: Catalog, metrics: Metrics, one: Notice) -> None:
    """Take a filter out of the live set, for the reason that the notice gives.

    Raises:
        DeliveryError: Kafka did not take it.
        KafkaException: Kafka does not answer.
    """
    owner, _, name = one.key.partition("/")
    catalog.stop(owner, name, one.version, suspended=one.text.removeprefix("suspended: "))
    metrics.suspended.labels(one.key).inc()
    log.warning("filter %s version %d is %s", one.key, one.version, one.text)


def batch_start(state: EngineState, batch: int) -> dict[TopicPartition, int]:
    """Return the offsets at which *batch* began."""
    before = positions(state.planned(batch - 1)) if batch > 0 else {}
    return {**state.beginnings(), **before}


def send_notices(control: ControlProducer, notices: Sequence[Notice]) -> None:
    """Write *notices* to their owners' answers; on return they are acknowledged.

    Raises:
        DeliveryError: Kafka did not take one.
        KafkaException: Kafka does not answer.
    """
    if not notices:
        return
    owners = sorted({one.key.partition("/")[0] for one in notices})
    with control.writer(*map(answers, owners)) as writer:
        for one in notices:
            log.info("filter %s version %d: %s", one.key, one.version, one.text)
            owner, _, name = one.key.partition("/")
            answer = {
                "request": "", "accepted": one.good, "owner": owner, "name": name,
                "version": one.version, "reasons": [one.text], "time": now_ms(),
            }  # fmt: skip
            writer.write(answers(owner), records.ANSWER.encode(answer), key=name.encode())
