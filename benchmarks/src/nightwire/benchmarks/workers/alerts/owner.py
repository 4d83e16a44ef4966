"""A process that reads what passed filters, as their owner would, and notes each alert.

``python -m nightwire.benchmarks.workers.alerts.owner '{"bootstrap": …, "topics": […], "into": …}'``
writes into the file ``into``, before it asks for the next alert, each alert's id and its age [s]:
from the time of its observation, which the alert has in TAI, to now, both in UTC.  With ``group``
it is a member of that group: killed and started again it goes on where the group was.  Alerts whose
ids are below ``first`` are not noted.
"""

from datetime import UTC, datetime
from pathlib import Path

from nightwire.benchmarks.workers.arrivals import ArrivalLog
from nightwire.benchmarks.workers.worker import emit, first_order
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
    order = first_order()
    log, first = ArrivalLog(Path(order["into"])), order.get("first", 0)
    member = {"group": order["group"], "member": "owner"} if "group" in order else {}
    with AlertReader(order["topics"], bootstrap=order["bootstrap"], survey="sim", **member) as reader:
        emit({"ready": True})
        for alert in reader:
            now = datetime.now(UTC)
            if isinstance(alert.alert_id, int) and alert.alert_id >= first:
                log.note(f"{alert.alert_id}\t{age(alert, now)}")


if __name__ == "__main__":
    main()
