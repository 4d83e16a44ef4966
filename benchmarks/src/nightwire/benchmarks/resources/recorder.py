"""A process beside a benchmark that records what all others take, and what their metrics pages say.

It is a process of its own, so that its looks do not stop the sender of alerts, which is in the
harness. SIGTERM ends it; it leaves two files: ``readings.jsonl``, a line for each second, and
``metrics.json``.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import psutil

from nightwire.benchmarks.resources.process_stats import ProcessReader, Reading, has_sockets
from nightwire.benchmarks.resources.prometheus import PrometheusScraper

STEP = 1.0
"""Time between two looks. [s]"""
NETWORK_EVERY = 2
"""Looks of which one asks for sockets, too: that costs as much as all the rest."""
READINGS, METRICS = "readings.jsonl", "metrics.json"


def main(root: int, folder: Path, interval: int) -> None:
    """Record process *root* and its descendants into *folder* until SIGTERM.

    Args:
        root: The harness.
        folder: Where the two files go.
        interval: Time between two scrapes. [s]
    """
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    scrapes, reader, began = (
        PrometheusScraper(folder, interval),
        ProcessReader(psutil.Process(root)),
        time.time(),
    )
    try:
        scrapes.start()
        record(reader, scrapes, folder / READINGS, stop)
        series = scrapes.series(began, time.time(), interval)
    finally:
        scrapes.close()
    missing = [*scrapes.missing, *missing_sources(reader.pages)]
    found = {"began": began, "step": interval, "series": series, "missing": missing}
    (folder / METRICS).write_text(json.dumps(found))


def missing_sources(pages: Mapping[int, str]) -> Iterator[str]:
    """Yield what could not be looked at."""
    if not has_sockets():
        yield "ss is not installed (iproute2): no network"
    if 0 in pages:
        yield f"{pages[0]} has its metrics page on a port of its own choice: it was not scraped"


def record(reader: ProcessReader, scrapes: PrometheusScraper, path: Path, stop: threading.Event) -> None:
    """Write a line each `STEP` until *stop*, and one then."""
    looks, network = 0, has_sockets()
    with path.open("w", encoding="utf-8") as out:
        while True:
            last = stop.is_set()
            reader.network = network and (last or looks % NETWORK_EVERY == 0)
            out.write(line(reader.read()))
            out.flush()
            scrapes.scrape({port: name for port, name in reader.pages.items() if port})
            looks += 1
            if last:
                return
            stop.wait(STEP - time.time() % STEP)


def line(reading: Reading) -> str:
    """Return *reading* as a line of JSON."""
    return (
        json.dumps([round(reading.time, 2), [list(asdict(one).values()) for one in reading.processes]]) + "\n"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
