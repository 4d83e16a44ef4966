"""Rights that change: filters whose owners may no longer read their topics are suspended."""

import logging
import threading

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Stop
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.decision.notices import Notice
from nightwire.filters.delivery.producers import ControlProducer
from nightwire.filters.engine.supervisor import send_notices, suspend
from nightwire.filters.language import FilterError
from nightwire.filters.stats.metrics import Metrics

log = logging.getLogger("nightwire.filters")

EVERY = 5.0
"""Pause between two checks. [s]"""


class RightsWatcher:
    """Checks the rights of live filters, from the engine's start on.

    Args:
        bootstrap: Kafka's address.
        catalog: Knows the live filters.
        metrics: What to count.
        stop: When to end.
    """

    def __init__(self, bootstrap: str, catalog: Catalog, metrics: Metrics, stop: Stop) -> None:
        self._control = ControlProducer(bootstrap)
        self._catalog, self._metrics, self._stop = catalog, metrics, stop

    def start(self) -> None:
        """Check once, then in a thread of its own."""
        self.check()
        threading.Thread(target=self._run, name="rights", daemon=True).start()

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self.check()

    def check(self) -> None:
        """Suspend the filters that read what their owners may not; wait while Kafka is away."""
        try:
            bad = [
                Notice(one.key, one.version, f"suspended: {'; '.join(reasons)}")
                for one, reasons in self._catalog.forbidden().items()
            ]
            for one in bad:
                suspend(self._catalog, self._metrics, one)
            send_notices(self._control, bad)
        except (KafkaException, DeliveryError, TimeoutError, FilterError) as error:
            log.warning("the rights of filters are not known: %s", error)
