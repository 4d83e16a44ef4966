"""A process that subscribes to a gateway, acknowledges events, and returns whenever it is cut off.

``python -m nightwire.benchmarks.scenarios.faults.subscriber '{"port": …, "run": …, "into": …}'``
prints a line when it was greeted, and writes the local part of each event of the run into the file
``into`` before it answers.
"""

import time
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.benchmarks.workers.vtp.sockets import step
from nightwire.benchmarks.workers.vtp.subscribers import Order, Subscriber, SubscriberGroup
from nightwire.benchmarks.workers.worker import emit, first_order

PAUSE = 0.05
"""Before it connects again. [s]"""


class ReconnectingSubscriber(SubscriberGroup):
    """One subscriber, and after it the next of the same name.

    Args:
        order: Where to; it counts nothing.
        log: Where arrivals are written down.
    """

    def __init__(self, order: Order, log: ArrivalLog) -> None:
        super().__init__(order)
        self._log, self._run = log, order.run

    def listen(self) -> None:
        """Listen until the process is ended; begin anew wherever the connection is lost."""
        served = self.lost
        while True:
            step(self.selector, PAUSE)
            if self.lost > served:
                time.sleep(PAUSE)  # a gateway that is away would refuse again at once
                served = self.lost
                self.listeners = [Subscriber(self)]

    def note(self, listener: Subscriber, ivorn: bytes, now: float) -> None:
        """Write down an event of the run."""
        local = ivorn.rpartition(b"#")[2].decode()
        if local.startswith(f"{self._run}-"):
            self._log.note(local)


def main() -> None:
    """Subscribe as the order says, and listen."""
    order = first_order()
    log = ArrivalLog(Path(order["into"]))
    subscriber = ReconnectingSubscriber(Order(order["port"], order["run"], 0), log)
    emit({"greeted": subscriber.greet()})
    subscriber.listen()


if __name__ == "__main__":
    main()
