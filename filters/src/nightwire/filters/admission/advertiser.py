"""Advertisements: what is written to the topics of live filters, said in `subscriptions`."""

import logging
import threading
from collections.abc import Iterable

from confluent_kafka import KafkaException

from nightwire.core.runtime import Stop
from nightwire.core.subscriptions import InterestError, Registrar
from nightwire.filters.admission.catalog import Catalog
from nightwire.filters.model.live_filter import LiveFilter

log = logging.getLogger("nightwire.filters")

EVERY = 5.0
"""Pause between two looks at the live filters. [s]"""
REFRESH = 60.0
"""Time between two refreshes: there may be ten thousand filters. [s]"""


def advertisements(filters: Iterable[LiveFilter]) -> dict[str, tuple[str, str]]:
    """Return what *filters* advertise: by name the topic, and the condition that all in it meets.

    That is known of conditions in SQL whose alerts are sent on as they are.
    """
    return {
        f"{one.owner}.{one.name}": (one.topic, one.source)
        for one in filters
        if one.language == "sql" and not one.output
    }


class Advertiser:
    """Advertises what live filters write.

    Args:
        bootstrap: Kafka's address.
        catalog: Knows the live filters.
        stop: When to end.
    """

    def __init__(self, bootstrap: str, catalog: Catalog, stop: Stop) -> None:
        self._registrar = Registrar(bootstrap, "filters", interval=REFRESH)
        self._catalog, self._stop = catalog, stop
        self._said = dict[str, tuple[str, str]]()

    def start(self) -> None:
        """Advertise in a thread of its own."""
        threading.Thread(target=self._run, name="advertiser", daemon=True).start()

    def _run(self) -> None:
        with self._registrar:
            while not self._stop.wait(EVERY):
                try:
                    self.update()
                except (KafkaException, TimeoutError):
                    log.debug("nothing is advertised anew while Kafka is away")

    def update(self) -> None:
        """Advertise what has become live, and take back what is not any more.

        Raises:
            KafkaException: Kafka does not answer.
        """
        now = advertisements(self._catalog.live())
        for name in self._said.keys() - now.keys():
            self._registrar.unadvertise(name)
        for name, (topic, condition) in now.items():
            if self._said.get(name) != (topic, condition):
                try:
                    self._registrar.advertise(name, topic, condition)
                except InterestError as error:
                    log.warning("%s is not advertised: %s", topic, error)
        self._said = now
