"""A thread that restarts its work after errors, from the last committed offsets."""

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable

from confluent_kafka import KafkaException

from nightwire.core.kafka import DeliveryError
from nightwire.core.runtime import Backoff
from nightwire.schemas import MendableError

log = logging.getLogger("nightwire.flows")


class RestartingThread(threading.Thread):
    """Runs sessions, one after the other, until it is told to leave.

    Args:
        name: The thread's name, in the log too.

    Attributes:
        problem: The error for which events wait; empty where none do.
        retries: Failed attempts that were made again.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.leaving = threading.Event()
        self.problem = ""
        self.retries = 0

    def leave(self) -> None:
        """End after the current batch or event."""
        self.leaving.set()

    @abstractmethod
    def session(self, reset_backoff: Callable[[], None]) -> None:
        """Work until `leaving` is set; call *reset_backoff* after each success."""

    def run(self) -> None:
        """Run a session again after each error, with growing pauses."""
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
