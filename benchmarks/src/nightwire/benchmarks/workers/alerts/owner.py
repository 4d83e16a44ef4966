"""A process that reads what passed filters, as their owner would, and notes how old each alert is.

``python -m nightwire.benchmarks.workers.alerts.owner '{"bootstrap": …, "topics": […], "into": …}'`` prints a JSON
line when it is in place, and writes into the file ``into``, for each alert, its id and its age [s]: from the
time of its observation, which the alert has in TAI, to now, both in UTC.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.benchmarks.workers.worker import emit
from nightwire.consumers import AlertReader, ReceivedAlert


def age(alert: ReceivedAlert, now: datetime) -> float:
    """Return how long before *now* (UTC) an alert was observed. [s]

    Raises:
        ValueError: It does not say when it was.
    """
    if alert.summary.time is None:
        raise ValueError(f"alert {alert.alert_id} has no time")
    return (now - alert.summary.time).total_seconds()


def main() -> None:
    """Read the order, then alerts, until the process is ended."""
    order = json.loads(sys.argv[1])
    notes = ArrivalLog(Path(order["into"]))
    with AlertReader(order["topics"], bootstrap=order["bootstrap"], survey="sim") as reader:
        emit({"ready": True})
        for alert in reader:
            now = datetime.now(UTC)
            notes.note(f"{alert.alert_id}\t{age(alert, now)}")


if __name__ == "__main__":
    main()
