"""What the paper says, as data: Baker and Grove (2007), section 4.1, seed `003`.  Pure.

Its Figs. 9 to 12 are plots without tables: here is only what its text says in numbers.
"""

from collections.abc import Mapping

from nightwire.benchmarks.model.scenario import Line, Published
from nightwire.benchmarks.scenarios.messages.experiments import flow_name
from nightwire.benchmarks.scenarios.messages.plan import KIB, LARGEST, MIB, MOST, Point, name_of

WHO = "Tycho, Baker and Grove (2007)"
HOSTS = "hosts of two 2.8 GHz Xeons, Fast Ethernet; Java sockets from end to end, no broker, nothing stored"
MBIT = 0.125
"""MB in a Mbit."""
ADDED = 1.2
"""“around 1.2 millisecond over the baseline Java's performance”, below 128 Kbytes. [ms]"""
JAVA = 0.2
"""“less than 200 μs for messages <512 bytes”. [ms]"""
JAVA_PEAK, TYCHO_PEAK, NARADA_PEAK = 11.5, 10.9, 7.3
"""Bandwidth of ping-pong. [MB/s]"""
PRODUCERS_SMALL, PRODUCERS_PEAK = 9.5 * MBIT, 90.4 * MBIT
"""With 1 to 14 producers: up to 256 bytes, and at best. [MB/s]"""
NARADA_PRODUCERS = Line("NaradaBrokering at its best (size not said)", (1, MOST), (84.2 * MBIT, 15.2 * MBIT))
CONSUMERS_PEAK = 88.5 * MBIT
"""“peaks at 1 Mbyte”; it is divided between the consumers. [MB/s]"""

FIGURES: Mapping[str, Published] = {
    f"latency_{name_of(256)}_p50_ms": Published(
        ADDED,
        WHO,
        f"“around 1.2 millisecond” more than plain Java sockets, which take “less than 200 μs”; {HOSTS}",
    ),
    f"pingpong_{name_of(LARGEST)}_megabytes_per_second": Published(
        TYCHO_PEAK, WHO, f"its plateau; plain Java sockets 11.5, NaradaBrokering at best 7.3; {HOSTS}"
    ),
    flow_name(Point(producers=MOST), 256): Published(
        PRODUCERS_SMALL, WHO, f"at most, with 1 to 14 producers of up to 256 bytes; {HOSTS}"
    ),
    flow_name(Point(producers=MOST), MIB): Published(
        PRODUCERS_PEAK, WHO, f"at best of all sizes, with 1 to 14 producers; {HOSTS}"
    ),
    flow_name(Point(), MIB): Published(
        CONSUMERS_PEAK, WHO, f"Fig. 12's peak; it is divided between 1 to 14 consumers; {HOSTS}"
    ),
}
"""By the name of our figure."""

LATENCY = (
    Line(f"{WHO}: added to plain Java sockets", (256, 128 * KIB), (ADDED, ADDED)),
    Line("plain Java sockets, at most", (256, 512), (JAVA, JAVA)),
)
PINGPONG = tuple(
    Line(name, (256, LARGEST), (peak, peak))
    for name, peak in (
        ("plain Java sockets, peak", JAVA_PEAK),
        ("Tycho, plateau", TYCHO_PEAK),
        ("NaradaBrokering, peak", NARADA_PEAK),
    )
)
BY_SIZE: Mapping[str, tuple[Line, ...]] = {
    "producers": (
        Line("Tycho, 1 to 14 producers, peak", (256, MIB), (PRODUCERS_PEAK, PRODUCERS_PEAK)),
        Line("Tycho and NaradaBrokering, up to 256 bytes", (256,), (PRODUCERS_SMALL,)),
    ),
    "consumers": (Line("Tycho, peak, divided between 1 to 14 consumers", (MIB,), (CONSUMERS_PEAK,)),),
}
"""Of its Figs. 11 and 12."""
BY_COUNT: Mapping[str, tuple[Line, ...]] = {"producers": (NARADA_PRODUCERS,), "consumers": ()}
