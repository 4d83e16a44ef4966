"""The corpus of real VOEvents: verdicts, and every byte through the gateway."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.gateway import InvalidEventError, broker_packet, element_bytes
from nightwire.gateway.voevent.parsed_fields import parse_fields
from nightwire.gateway.voevent.validation import checker, schema_complaint
from nightwire.gateway.voevent.xml import parse_xml

pytestmark = pytest.mark.data


def manifest(data: Path) -> list[tuple[Path, dict[str, str]]]:
    with (data / "voevent" / "MANIFEST.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(data / "voevent" / "corpus" / row["file"], row) for row in rows]


def verdict(document: bytes) -> str:
    try:
        packet = broker_packet(document)
    except InvalidEventError:
        return "unparsable"
    return ("invalid" if schema_complaint(packet.root) else "valid") + packet.version


def test_verdicts_are_those_of_the_published_schemas(data: Path) -> None:
    rows = manifest(data)
    found = [(file.name, verdict(file.read_bytes())) for file, _ in rows]
    assert found == [(file.name, row["xsd"].partition(":")[0]) for file, row in rows]
    assert len(found) > 900


@pytest.mark.native
def test_the_native_check_finds_in_the_corpus_what_libxml2_finds(data: Path) -> None:
    judged = 0
    for file, row in manifest(data):
        document = file.read_bytes()
        found = checker().check(document)
        if found.well_formed:
            judged += 1
            root = parse_xml(document)
            start, end = found.element or (0, 0)
            assert document[start:end] == element_bytes(document)
            assert found.facts() == parse_fields(root)
            assert found.valid == row["xsd"].startswith("valid") == (schema_complaint(root) is None)
        else:
            assert row["xsd"].startswith("unparsable")
    assert judged > 900


@pytest.mark.kafka
def test_the_corpus_goes_through_unchanged_and_what_is_invalid_is_refused(
    data: Path,
    start_gateway: Callable[..., Any],
    telescope: Callable[..., Any],
    logged: Callable[[], dict[str, list[bytes]]],
) -> None:
    gateway = start_gateway("--subscriber-max-frame", str(1 << 20))
    listener = telescope(gateway.subscribers)
    rows = manifest(data)
    valid = {file.read_bytes() for file, row in rows if row["xsd"].startswith("valid")}
    distinct = {broker_packet(document).hash: document for document in sorted(valid)}
    done = gateway.send("--json", "--connections", "8", str(data / "voevent" / "corpus"))
    report = json.loads(done.stdout)
    acked = {Path(one["name"]) for one in report["results"] if one["verdict"] == "ack"}
    assert acked == {file for file, row in rows if row["xsd"].startswith("valid")}
    assert report["naked"] == len(rows) - len(acked)
    hashes = {broker_packet(document).hash for document in listener.wait_for(len(distinct))}
    assert hashes == set(distinct)
    assert set(listener.events) <= valid
    assert gateway.stop() == 0
    stored = {raw for copies in logged().values() for raw in copies}
    assert {broker_packet(raw).hash for raw in stored & valid} == set(distinct)
