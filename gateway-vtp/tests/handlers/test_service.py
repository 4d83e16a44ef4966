"""Handlers in a gateway, a process of its own, on a real Kafka."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nightwire.gateway import Author, Submission
from nightwire.gateway.net.addresses import Address
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Ivorns = Callable[[int], list[str]]
Start = Callable[..., Any]
Metric = Callable[..., float]


def send(gateway: Any, *documents: bytes) -> None:
    author = Author(Address("127.0.0.1", gateway.authors))
    for document in documents:
        assert author.send(Submission("x", document)).verdict == "ack"


def script(folder: Path, text: str) -> str:
    folder.mkdir()
    (folder / "act.sh").write_text(f"cd {folder}\n{text}\n")
    return f"sh {folder / 'act.sh'}"


def acted(folder: Path, name: str = "acted") -> list[str]:
    return (folder / name).read_text().split() if (folder / name).exists() else []


def test_each_event_is_acted_on_once_and_a_bad_handler_stops_no_other(
    start_gateway: Start, ivorns: Ivorns, metric: Metric, tmp_path: Path
) -> None:
    good = script(
        tmp_path / "good", 'cat > "packet-$VOEVENT_OFFSET-$VOEVENT_PARTITION"; echo $VOEVENT_IVORN >> acted'
    )
    slow, inbox = "sleep 600", tmp_path / "inbox"
    saving = ("--save-event", "--save-event-directory", str(inbox))
    gateway = start_gateway("--cmd", good, "--cmd", "false", "--cmd", slow, *saving, "--handler-timeout", "2")
    names = ivorns(12)
    roles = ["observation", "prediction", "test", "utility"] * 3
    sent = {name: packet(name, role=role) for name, role in zip(names, roles, strict=True)}
    wanted = {name for name, role in zip(names, roles, strict=True) if role in ("observation", "prediction")}
    send(gateway, *sent.values(), *(document + b"<!-- a copy -->" for document in sent.values()))

    def has(handler: str, outcome: str, count: int) -> bool:
        sample = f'nightwire_gateway_handled_total{{handler="{handler}",outcome="{outcome}"}}'
        return metric(gateway, sample) == count

    for handler, outcome in ((good, "done"), ("false", "failed"), ("save-event", "done"), (slow, "late")):
        until(partial(has, handler, outcome, 6), f"{handler} to have had six events")
    assert Counter(acted(tmp_path / "good")) == dict.fromkeys(wanted, 1)
    documents = sorted(sent[name] for name in wanted)
    assert sorted(file.read_bytes() for file in (tmp_path / "good").glob("packet-*")) == documents
    assert sorted(file.read_bytes() for file in inbox.iterdir()) == documents
    assert gateway.stop() == 0
    log = gateway.log.read_text()
    assert "handler false, " in log
    assert "exit status 1" in log
    assert "not done within 2 s, and killed" in log


def test_a_handler_begins_with_what_comes_next_and_goes_on_where_it_stopped_or_was_killed(
    start_gateway: Start, ivorns: Ivorns, tmp_path: Path
) -> None:
    past, first, held, away, last = ivorns(5)
    documents = {name: packet(name, role="observation") for name in (past, first, held, away, last)}
    act = script(
        tmp_path / "acts",
        f"""
        echo $VOEVENT_IVORN >> began
        while [ "$VOEVENT_IVORN" = "{held}" ] && [ ! -e go ]; do sleep 0.05; done
        echo $VOEVENT_IVORN >> acted""",
    )
    folder = tmp_path / "acts"
    other = start_gateway("--no-accounts", name="other")
    send(other, documents[past])
    gateway = start_gateway("--cmd", act)
    send(gateway, documents[first], documents[held])
    until(lambda: held in acted(folder, "began") and acted(folder) == [first], "the handler")
    gateway.kill()
    send(other, documents[away])
    assert other.stop() == 0
    (folder / "go").touch()
    until(lambda: held in acted(folder), "the command that outlived its gateway")
    gateway.start()
    until(lambda: acted(folder).count(held) == 2, "what was not done, again")
    until(lambda: away in acted(folder), "what came meanwhile")
    assert gateway.stop() == 0
    done = Counter(acted(folder))
    gateway.start()
    send(gateway, documents[last])
    until(lambda: last in acted(folder), "the last event")
    assert gateway.stop() == 0
    assert Counter(acted(folder)) == {**done, last: 1}
    assert past not in done


def test_a_plug_in_that_cannot_be_used_stops_the_start(start_gateway: Start) -> None:
    with pytest.raises(AssertionError, match="plug-in save-event has no option 'folder'; it has directory"):
        start_gateway("--save-event", "--handler-option", "save-event.folder=x")
