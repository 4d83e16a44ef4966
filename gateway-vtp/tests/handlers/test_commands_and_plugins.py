"""Handlers as real processes: commands and plug-ins, good, bad and slow ones."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from nightwire.core.runtime import clean_environment
from nightwire.gateway.eventlog.event import Event
from nightwire.gateway.handlers.commands import CommandRunner, Runner
from nightwire.gateway.handlers.plugin_process import PluginRunner
from nightwire.gateway.handlers.plugins import PluginError, installed_plugins
from nightwire.gateway.handlers.progress import HandlerOutcome, HandlerResult
from nightwire.gateway.handlers.settings import HandlerSpec
from tests._voevents import packet
from tests._waiting import until

PLUGIN = """
import os, sys, time

class Note:
    def __init__(self, path="", mood="calm"):
        if mood == "broken":
            raise ValueError("no such mood")
        self.path, self.mood = path, mood

    def __call__(self, event):
        if self.mood == "angry":
            raise KeyError(event.ivorn)
        if self.mood == "dying":
            os._exit(3)
        if self.mood == "slow" and event.offset == 0:
            time.sleep(600)
        with open(self.path, "a") as file:
            print(event.ivorn, event.role, event.fields["ra"], event.root.get("version"), file=file)
            print("left on standard input:", repr(sys.stdin.read()), file=file)
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution with the plug-ins *note* and *lost*, on the path of this process."""
    (tmp_path / "note_plugin.py").write_text(PLUGIN)
    info = tmp_path / "note_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: note-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[nightwire.handlers]\nnote = note_plugin:Note\nlost = no_such:Thing\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))


def event(document: bytes, offset: int = 0) -> Event:
    return Event("voevents", 2, offset, f"ivo://a/b#{offset}", "observation", document)


def run(runner: Runner, *events: Event) -> list[HandlerResult]:
    async def all_of_them() -> list[HandlerResult]:
        await runner.start()
        try:
            return [await runner.run(one) for one in events]
        finally:
            await runner.close()

    return asyncio.run(all_of_them())


def command(*words: str, timeout: float = 60.0) -> CommandRunner:
    return CommandRunner(HandlerSpec("x", words), 4, timeout)


def test_a_packet_that_cannot_be_written_to_disk_is_a_result_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    (result,) = run(command("true"), event(b"<VOEvent/>"))
    assert (result.outcome, "gone" in result.reason) == (HandlerOutcome.NOT_STARTED, True)


def test_a_command_gets_the_packet_on_standard_input_and_the_rest_by_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "not-to-be-told")
    script = f"cat > {shlex.quote(str(tmp_path))}/packet; env > {shlex.quote(str(tmp_path))}/env"
    document = os.urandom(300_000)
    assert run(command("sh", "-c", script), event(document)) == [HandlerResult(HandlerOutcome.DONE)]
    assert (tmp_path / "packet").read_bytes() == document
    told = (tmp_path / "env").read_text().splitlines()
    assert {"VOEVENT_IVORN=ivo://a/b#0", "VOEVENT_PARTITION=2", "VOEVENT_OFFSET=0"} <= set(told)
    assert "not-to-be-told" not in (tmp_path / "env").read_text()


@pytest.mark.parametrize(
    ("words", "outcome", "reason"),
    [
        (("sh", "-c", "exit 7"), HandlerOutcome.FAILED, "exit status 7"),
        (("sh", "-c", "kill -9 $$"), HandlerOutcome.FAILED, "signal 9"),
        (("/nowhere/at-all",), HandlerOutcome.NOT_STARTED, "/nowhere/at-all"),
        (("true",), HandlerOutcome.DONE, ""),  # it reads nothing
    ],
)
def test_how_a_command_ended_is_told(words: Sequence[str], outcome: HandlerOutcome, reason: str) -> None:
    (handled,) = run(command(*words), event(b"x" * 200_000))
    assert handled.outcome is outcome
    assert reason in handled.reason


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended_with_its_children_even_if_they_do_not_listen(
    tmp_path: Path,
) -> None:
    pids = tmp_path / "pids"
    pids.touch()
    child = f"trap '' TERM; echo $$ >> {pids}; while :; do sleep 1; done"
    script = f"sh -c {shlex.quote(child)} & {child}"
    (handled,) = run(command("sh", "-c", script, timeout=1.0), event(b""))
    assert handled == HandlerResult(HandlerOutcome.LATE, "not done within 1 s, and killed")
    until(lambda: not any(map(alive, map(int, pids.read_text().split()))))


async def test_a_command_is_ended_when_the_gateway_has_no_more_time(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    task = asyncio.create_task(command("sh", "-c", f"echo $$ > {pid}; exec sleep 600").run(event(b"")))
    await asyncio.to_thread(until, lambda: pid.exists() and pid.read_text().endswith("\n"))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not alive(int(pid.read_text()))


def alive(pid: int) -> bool:
    """Whether *pid* still runs; one that only waits to be asked for its status does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def plugin(timeout: float = 60.0, name: str = "note", **options: str) -> PluginRunner:
    return PluginRunner(HandlerSpec(name, options=options), timeout)


@pytest.mark.usefixtures("plugins")
def test_a_plug_in_is_found_by_its_entry_point_and_gets_the_packet_parsed(tmp_path: Path) -> None:
    assert installed_plugins() == ["lost", "note", "print-event", "save-event"]
    notes = tmp_path / "notes"
    events = [event(packet(f"ivo://a/b#{offset}", role="prediction"), offset) for offset in range(3)]
    assert run(plugin(path=str(notes)), *events) == [HandlerResult(HandlerOutcome.DONE)] * 3
    lines = notes.read_text().splitlines()
    assert lines[::2] == [f"ivo://a/b#{offset} prediction None 2.0" for offset in range(3)]
    assert set(lines[1::2]) == {"left on standard input: ''"}


@pytest.mark.slow
@pytest.mark.usefixtures("plugins")
@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"name": "lost"}, "plug-in lost cannot be imported: ModuleNotFoundError: No module named 'no_such'"),
        ({"colour": "red"}, "plug-in note has no option 'colour'; it has path, mood"),
        ({"mood": "broken"}, "plug-in note does not take its options: no such mood"),
        ({"name": "print-event", "x": "1"}, "plug-in print-event has no option 'x'; it has none"),
    ],
)
def test_a_plug_in_that_cannot_work_says_so_at_the_start(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(PluginError) as error:
        run(plugin(**options))
    assert str(error.value) == complaint


@pytest.mark.slow
@pytest.mark.usefixtures("plugins")
def test_a_plug_in_that_fails_dies_or_hangs_is_told_of_and_gets_the_next_event(tmp_path: Path) -> None:
    events = [event(packet(f"ivo://a/b#{offset}"), offset) for offset in range(2)]
    first, second = run(plugin(mood="angry"), *events)
    assert first.outcome is second.outcome is HandlerOutcome.FAILED
    assert first.reason == "KeyError: 'ivo://a/b#0' (note_plugin.py:12)"
    assert [one.outcome for one in run(plugin(mood="dying"), *events)] == [HandlerOutcome.FAILED] * 2
    slow = plugin(timeout=1.0, mood="slow", path=str(tmp_path / "notes"))
    assert [one.outcome for one in run(slow, *events)] == [HandlerOutcome.LATE, HandlerOutcome.DONE]
    assert "ivo://a/b#1" in (tmp_path / "notes").read_text()


def test_print_and_save_event_work_as_handlers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    document = packet("ivo://a/b#0")
    saving, printing = plugin(name="save-event", directory=str(tmp_path)), plugin(name="print-event")
    assert (
        run(saving, event(document)) == run(printing, event(document)) == [HandlerResult(HandlerOutcome.DONE)]
    )
    assert (tmp_path / "ivo__a_b0").read_bytes() == document
    assert capfd.readouterr().out.startswith("<voe:VOEvent ")


def test_no_setting_of_the_gateway_reaches_a_handler() -> None:
    assert clean_environment({"KAFKA_SASL_PASSWORD": "x", "NIGHTWIRE_X": "y", "PATH": "z"}) == {"PATH": "z"}
