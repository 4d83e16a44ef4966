"""Bulk submission to the whole gateway, on a real Kafka."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.gateway import encode_frame
from nightwire.gateway.vtp.bulk import PARAM
from tests._voevents import container, packet

pytestmark = pytest.mark.kafka


def test_many_events_on_one_connection_and_in_containers(
    start_gateway: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
    logged: Callable[[], dict[str, list[bytes]]],
    tmp_path: Path,
) -> None:
    gateway = start_gateway("--author-timeout", "1")
    names = ivorns(310)
    folder = tmp_path / "night"
    folder.mkdir()
    for number, ivorn in enumerate(names[:300]):
        (folder / f"{number:03}.xml").write_bytes(packet(ivorn))
    (folder / "004-bad.xml").write_bytes(packet(names[0], what="<What><Bogus/></What>"))
    done = gateway.send("--bulk", "--connections", "1", "--json", str(folder))
    report = json.loads(done.stdout)
    assert (done.returncode, report["acked"], report["naked"], report["failed"]) == (1, 300, 1, 0)
    (bad,) = [one for one in report["results"] if one["verdict"] == "nak"]
    assert bad["name"].endswith("004-bad.xml")
    assert "Bogus" in bad["reason"]
    (folder / "004-bad.xml").unlink()
    assert gateway.send("--bulk", str(folder)).returncode == 0  # all are known already

    offers = [dict(one.params).get(PARAM) for one in gateway.ask(*[encode_frame(b"x")] * 3)]
    assert offers == ["4096", None, None]

    documents = [packet(ivorn) for ivorn in names[300:]]
    documents[3] = b"no XML"
    sent = encode_frame(gzip.compress(container(*documents)))
    answers = gateway.ask(sent, encode_frame(packet("ivo://a/b#never-read")))
    assert [one.role for one in answers] == ["ack"] * 3 + ["nak"] + ["ack"] * 6
    assert [one.origin for one in answers if one.role == "ack"] == names[300:303] + names[304:]
    broken = container(documents[0], documents[1])[:1600]
    roles = [(one.role, one.result) for one in gateway.ask(encode_frame(broken))]
    assert roles == [("ack", "known already"), ("nak", "the container ends within '1.xml'")]
    assert gateway.stop() == 0
    assert set(names) - set(logged()) == {names[303]}
