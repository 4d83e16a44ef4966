"""A process that subscribes to a gateway, acknowledges what comes, and returns whenever it is cut off.

``python -m nightwire.benchmarks.scenarios.faults.subscriber '{"port": …, "run": …, "into": …}'`` prints a JSON line
when it was greeted, and writes the local part of each event of the run into the file ``into`` before it
answers.
"""

import json
import sys
import time
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.benchmarks.workers.vtp.frames import say, step
from nightwire.benchmarks.workers.vtp.subscribers import Order, Subscriber, SubscriberGroup

PAUSE = 0.05
"""Before it connects again. [s]"""


class ReconnectingSubscriber(SubscriberGroup):
    """One subscriber, and after it the next of the same name.

    Args:
        order: Where to; it counts nothing.
        notes: Where what comes is written down.
    """

    def __init__(self, order: Order, notes: ArrivalLog) -> None:
        super().__init__(order)
        self._notes, self._run = notes, order.run

    def listen(self) -> None:
        """Listen until the process is ended; begin anew wherever the connection is lost."""
        served = self.lost
        while True:
            step(self.selector, PAUSE)
            if self.lost > served:
                time.sleep(PAUSE)  # as a subscriber does: a gateway that is away would refuse again at once
                served = self.lost
                self.listeners = [Subscriber(self)]

    def note(self, listener: Subscriber, ivorn: bytes, now: float) -> None:
        """Write down what came."""
        local = ivorn.rpartition(b"#")[2].decode()
        if local.startswith(f"{self._run}-"):
            self._notes.note(local)


def main() -> None:
    """Read the order, subscribe and listen."""
    order = json.loads(sys.argv[1])
    telescope = ReconnectingSubscriber(Order(order["port"], order["run"], 0), ArrivalLog(Path(order["into"])))
    say({"greeted": telescope.greet()})
    telescope.listen()


if __name__ == "__main__":
    main()
