"""A process that subscribes to a gateway, acknowledges what comes, and returns whenever it is cut off.

``python -m nightwire.benchmarks.faults._telescope '{"port": …, "run": …, "into": …}'`` prints a JSON line
when it was greeted, and writes the local part of each event of the run into the file ``into`` before it
answers.
"""

import json
import sys
import time
from pathlib import Path

from nightwire.benchmarks._arrivals import Notes
from nightwire.benchmarks.gateway._listeners import Listener, Order, Play
from nightwire.benchmarks.gateway._wire import say, step

PAUSE = 0.05
"""Before it connects again. [s]"""


class Telescope(Play):
    """One subscriber, and after it the next of the same name.

    Args:
        order: Where to; it counts nothing.
        notes: Where what comes is written down.
    """

    def __init__(self, order: Order, notes: Notes) -> None:
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
                self.listeners = [Listener(self)]

    def note(self, listener: Listener, ivorn: bytes, now: float) -> None:
        """Write down what came."""
        local = ivorn.rpartition(b"#")[2].decode()
        if local.startswith(f"{self._run}-"):
            self._notes.note(local)


def main() -> None:
    """Read the order, subscribe and listen."""
    order = json.loads(sys.argv[1])
    telescope = Telescope(Order(order["port"], order["run"], 0), Notes(Path(order["into"])))
    say({"greeted": telescope.greet()})
    telescope.listen()


if __name__ == "__main__":
    main()
