"""A worker that stays: it reads and writes topics over HTTP, or by Kafka's own clients beside it.

``python -m nightwire.benchmarks.scenarios.directory.http_worker '{"bootstrap": …}'`` follows orders
as `worker.serve` describes; those of ``take`` are of the scenario `messages`.
"""

import json
import os
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from secrets import token_hex
from urllib.parse import urlencode

from nightwire.benchmarks import RunError
from nightwire.benchmarks.scenarios.messages.worker import taking
from nightwire.benchmarks.workers.alerts.reader import PATIENCE, ReadStats
from nightwire.benchmarks.workers.worker import Order, Work, serve
from nightwire.schemas import Codec, sim_alert_schema
from nightwire.schemas.wire import unframe

MB = 1 << 20
LENGTH = struct.Struct(">i")
"""Before each value of the form ``avro``."""


class HttpReader:
    """One connection that reads *topic*, in a group of its own, as *asked*."""

    def __init__(self, address: str, topic: str, asked: Mapping[str, str]) -> None:
        self._http = HTTPConnection(address, timeout=PATIENCE)
        self._path = f"/topics/{topic}/records?" + urlencode({"group": f"bench-{token_hex(4)}", **asked})
        self._after = ""

    def batch(self, more: str = "") -> bytes:
        """Return the next answer; *more* is asked beside.

        Raises:
            RunError: It is an error.
        """
        self._http.request("GET", f"{self._path}&after={self._after}{more}")
        answer = self._http.getresponse()
        body = answer.read()
        if answer.status not in (200, 204):
            raise RunError(f"the mediator refuses: {body[:200]!r}")
        self._after = answer.headers["Nightwire-After"]
        return body


def values(body: bytes) -> Iterator[memoryview]:
    """Yield the values of an answer of the form ``avro``."""
    view, at = memoryview(body), 0
    while at < len(body):
        begin = at + LENGTH.size
        at = begin + LENGTH.unpack_from(body, at)[0]
        yield view[begin:at]


def counting(work: str) -> Callable[[bytes], int]:
    """Return what is done with an answer; it gives the number of its records.

    *work* is ``values`` (nothing), ``alerts`` (each is decoded from Avro) or ``json``.
    """
    codec = Codec(sim_alert_schema())

    def alerts(body: bytes) -> int:
        return sum(1 for value in values(body) if codec.decode(unframe(value)[1]))

    return {
        "values": lambda body: sum(1 for _ in values(body)),
        "alerts": alerts,
        "json": lambda body: len(json.loads(body)),
    }[work]


@contextmanager
def asking(order: Order) -> Iterator[Work]:
    """Read ``expect`` records of ``topic`` at ``address``; finds the fields of `ReadStats`."""
    reader, count = HttpReader(order["address"], order["topic"], order["asked"]), counting(order["work"])
    records = count(reader.batch("&max=1"))  # its group is there, and what decodes is compiled
    yield lambda: vars(read(reader, count, order["expect"], records))


def read(reader: HttpReader, count: Callable[[bytes], int], expect: int, records: int = 0) -> ReadStats:
    """Read on from *records* to *expect* of them."""
    stats = ReadStats(records=records, began=time.monotonic())
    while stats.records < expect:
        body = reader.batch()
        stats.records += count(body)
        stats.size += len(body)
    stats.last = time.monotonic()
    return stats


@contextmanager
def asking_many(order: Order) -> Iterator[Work]:
    """Read ``expect`` records over each of ``clients``; finds when the last was there."""
    reader, clients = (order["address"], order["topic"], order["asked"]), order["clients"]

    def one(_number: int) -> int:
        return read(HttpReader(*reader), counting("values"), order["expect"]).records

    with ThreadPoolExecutor(clients) as threads:
        yield lambda: {"records": sum(threads.map(one, range(clients))), "last": time.monotonic()}


@contextmanager
def writing(order: Order) -> Iterator[Work]:
    """Write ``each`` records of 1 MB over each of ``clients`` connections; finds when it began."""
    body, path = os.urandom(MB), f"/topics/{order['topic']}/records"

    def one(_number: int) -> None:
        http = HTTPConnection(order["address"], timeout=PATIENCE)
        for _record in range(order["each"]):
            http.request("POST", path, body)
            answer = http.getresponse()
            if (said := answer.read()) and answer.status != 200:
                raise RunError(f"the mediator refuses: {said[:200]!r}")

    def all_of_them() -> dict[str, float]:
        began = time.monotonic()
        list(threads.map(one, range(order["clients"])))
        return {"began": began}

    with ThreadPoolExecutor(order["clients"]) as threads:
        yield all_of_them


if __name__ == "__main__":
    serve({"take": taking, "ask": asking, "ask many": asking_many, "write": writing})
