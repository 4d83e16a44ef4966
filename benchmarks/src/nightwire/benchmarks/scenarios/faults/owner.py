"""A process that reads what passed a filter, as its owner would: in a group, alert by alert.

``python -m nightwire.benchmarks.scenarios.faults.owner '{"bootstrap": …, "topic": …, "group": …}'`` prints a JSON line
when it is in place, and writes each id from ``from`` on into the file ``into`` before it asks for the next
alert.  Killed and started again it goes on where the group was.
"""

import json
import sys
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.benchmarks.workers.worker import emit
from nightwire.consumers import AlertReader


def main() -> None:
    """Read the order, then alerts, until the process is ended."""
    order = json.loads(sys.argv[1])
    notes = ArrivalLog(Path(order["into"]))
    with AlertReader(
        order["topic"], bootstrap=order["bootstrap"], group=order["group"], member="owner", survey="sim"
    ) as reader:
        emit({"ready": True})
        for alert in reader:
            if isinstance(alert.alert_id, int) and alert.alert_id >= order["from"]:
                notes.note(str(alert.alert_id))


if __name__ == "__main__":
    main()
