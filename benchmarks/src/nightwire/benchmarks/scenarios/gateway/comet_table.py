"""Table 1 of Swinbank (2014) with Comet's classes; for Debian's Python, without nightwire.

``python3 _comet_table.py PACKETS FOLDER EXPRESSIONS``: PACKETS is a file of frames, FOLDER lies in
memory, EXPRESSIONS is a JSON list of XPath expressions.  Prints one JSON line of microseconds an
event.
"""

import json
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from hashlib import sha1
from pathlib import Path
from typing import Any

from lxml import etree

# it has escapes that Python warns of when it compiles them
with warnings.catch_warnings(action="ignore"):
    import comet  # type: ignore[import-untyped]
    from comet.utility.event_db import Event_DB  # type: ignore[import-untyped]
    from comet.utility.xml import xml_document  # type: ignore[import-untyped]


def timed(work: Callable[[Any], object], things: Iterable[Any]) -> float:
    """Return how long *work* takes for each of *things*. [us]"""
    listed = list(things)
    began = time.perf_counter()
    for one in listed:
        work(one)
    return (time.perf_counter() - began) / len(listed) * 1e6


def asking(text: str) -> Callable[[Any], object]:
    """Return what asks an event for *text*, as Comet does for a subscriber."""
    expression = etree.XPath(text)
    return lambda event: bool(expression(event.element))


def frames(content: bytes) -> list[bytes]:
    """Cut *content* into messages."""
    found, start = [], 0
    while start < len(content):
        end = start + 4 + struct.unpack_from(">I", content, start)[0]
        found.append(content[start + 4 : end])
        start = end
    return found


def main() -> None:
    """Measure and print."""
    documents = frames(Path(sys.argv[1]).read_bytes())
    expressions = json.loads(sys.argv[3])
    schema = etree.XMLSchema(etree.parse(str(Path(comet.__file__).parent / "schema" / "VOEvent-v2.0.xsd")))
    database = Event_DB(sys.argv[2])
    parse = timed(xml_document, documents)
    events = [xml_document(document) for document in documents]
    found = {
        "parse": parse,
        "validate": timed(lambda event: schema.validate(event.element), events),
        "hash": timed(lambda event: sha1(event.raw_bytes).hexdigest(), events),  # noqa: S324
        "dedup": timed(database.check_event, events),
    }
    for number, text in enumerate(expressions, 1):
        found[f"xpath_{number}"] = timed(asking(text), events)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
