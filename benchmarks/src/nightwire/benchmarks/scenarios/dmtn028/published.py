"""What DMTN-028 says, as data.  Seed `002`: the seed's revision, unless a later one is named.  Pure."""

from collections.abc import Mapping

from nightwire.benchmarks.model.scenario import Line, Published

WHO = "DMTN-028"
ONE = "one producer, two consumers, one Kafka, 8 hosts of 4 vCPU; one alert of 136 kB"
LATER = "DMTN-028, later revision"
HOSTS = "13 large hosts, 10,000 alerts of 136 kB"
MIB = 1.048576
"""MB in a MiB."""
GIB = 1073.741824
"""MB in a GiB."""

FIGURES: Mapping[str, Published] = {
    "volume_100_with_stamps_send_seconds": Published(1.0, WHO, f"“about 1 second”; {ONE}"),
    "volume_1000_with_stamps_send_seconds": Published(3.88, WHO, f"3.37 to 4.32 s; {ONE}"),
    "volume_10000_with_stamps_send_seconds": Published(33.0, WHO, f"“about 28-33 seconds”; {ONE}"),
    "volume_1000_with_stamps_transit_seconds": Published(0.30, WHO, f"0.06 to 1.05 s; {ONE}"),
    "volume_1000_with_stamps_kafka_memory_megabytes": Published(
        26.1 * GIB, WHO, f"pages of its files included, 39 s a visit; {ONE}"
    ),
    "volume_1000_with_stamps_network_in_megabytes_per_second": Published(
        2.08 * MIB, WHO, f"mean over visits of 39 s, most of it idle; {ONE}"
    ),
    "volume_1000_with_stamps_network_out_megabytes_per_second": Published(
        4.03 * MIB, WHO, f"both consumers read everything; mean over visits of 39 s, most of it idle; {ONE}"
    ),
    "volume_10000_with_stamps_network_in_megabytes_per_second": Published(23 * MIB, WHO, f"peak; {ONE}"),
    "volume_10000_with_stamps_network_out_megabytes_per_second": Published(
        45 * MIB, WHO, f"peak, both consumers read everything; {ONE}"
    ),
    "producers_8_alerts_per_second": Published(
        10_000 / 3.75, LATER, f"100 producers, sent but not decoded; {HOSTS}"
    ),
}
"""By the name of our figure."""

OVER_ALERTS: Mapping[str, tuple[Line, ...]] = {
    "send_seconds": (
        Line(f"{WHO}, upper end", (100, 1_000, 10_000), (1.0, 4.0, 33.0)),
        Line(f"{WHO}, lower end", (100, 1_000, 10_000), (1.0, 3.0, 28.0)),
    ),
    "transit_seconds": (
        Line(f"{WHO}, upper end", (100, 10_000), (0.30, 0.30)),
        Line(f"{WHO}, lower end", (100, 10_000), (0.10, 0.10)),
    ),
    "network_in_megabytes_per_second": (Line(f"{WHO}, peak with stamps", (10_000,), (23 * MIB,)),),
    "network_out_megabytes_per_second": (
        Line(f"{WHO}, peak with stamps, two read everything", (10_000,), (45 * MIB,)),
    ),
}
"""Its Figs. 2, 4, 8 and 10, as far as its text has their numbers: by quantity, over alerts in a visit."""
ALERT = 0.136
"""Its one alert, 90 kB of which are stamps. [MB]"""
OVER_PRODUCERS = Line(LATER, (1, 100), (10_000 / 33.1, 10_000 / 3.75))
"""Alerts a second, sent and acknowledged."""


def over_size(quantity: str) -> list[Line]:
    """Return those of `OVER_ALERTS` that are of alerts with stamps, over MB in a visit."""
    lines = OVER_ALERTS.get(quantity, ())
    stamped = [line for line in lines if "lower end" not in line.name]
    return [Line(line.name, [ALERT * count for count in line.x], line.y) for line in stamped]
