"""A thread whose work begins anew after errors, where it last kept its place."""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Backoff
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.flows")


class Restarting(threading.Thread):
    """Works until it is told to leave.

    Args:
        name: Its name in the log.

    Attributes:
        problem: Why it does not get on; empty where it does.
        retries: Attempts that failed and were made again.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.leaving = threading.Event()
        self.problem = ""
        self.retries = 0

    def leave(self) -> None:
        """Finish what is at hand, and end."""
        self.leaving.set()

    @abstractmethod
    def session(self, worked: Callable[[], None]) -> None:
        """Work until `leaving` is set; call *worked* where it gets on."""

    def run(self) -> None:
        """Work, again and again."""
        backoff = Backoff(0.2, 5.0)
        while not self.leaving.is_set():
            try:
                self.session(backoff.reset)
            except (KafkaException, DeliveryError, MendableError) as error:
                self.problem = str(error)
                log.warning("%s: %s; beginning anew", self.name, error)
                self.leaving.wait(backoff.next())
            except Exception as error:
                self.problem = f"{type(error).__name__}: {error}"
                log.exception("%s", self.name)
                self.leaving.wait(backoff.next())
