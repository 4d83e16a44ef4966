"""`nightwire status`: processes, accounts, rates and lag of the stack."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from nightwire.core.accounting import Account, StageTotal, discrepancies, lag, read_accounts, totals
from nightwire.core.cli.tables import Cell, Column, Listing, show_tables, stage_table
from nightwire.core.kafka import end_offsets_at
from nightwire.core.runtime.disk import LEAST, Disk, disk_of, full_disk
from nightwire.core.runtime.endpoints import elsewhere, lives
from nightwire.core.stack.state import checked, supervisor_alive

NOT_RUNNING = frozenset({"stopped", "stopping", "restarting", "waiting"})
"""States of a process that has none."""


@dataclass(frozen=True)
class Snapshot:
    """The state of the stack at one instant.

    Attributes:
        state: The state file.
        accounts: All accounts; None while Kafka does not answer.
        lag: Records that each stage has not accounted for yet.
        at: When it was taken. [s, monotonic]
        disk: The disk of the stack's folder.
    """

    state: Mapping[str, Any]
    accounts: list[Account] | None
    lag: Mapping[str, int]
    at: float
    disk: Disk


def take_snapshot(folder: Path) -> Snapshot | None:
    """Return a snapshot of the stack in *folder*; None where none runs."""
    state = checked(folder)
    if not supervisor_alive(state):
        return None
    # a full disk keeps the supervisor from writing what it knows
    state["processes"] = [one if lives(one) else gone(one) for one in state["processes"]]
    kafka = state["endpoints"]["kafka"]
    try:
        accounts = read_accounts(kafka)
        lags = lag(accounts, end_offsets_at(kafka, sorted({account.source for account in accounts})))
    except KafkaException:
        return Snapshot(state, None, {}, time.monotonic(), disk_of(folder))
    return Snapshot(state, accounts, lags, time.monotonic(), disk_of(folder))


def gone(process: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a process that does not run now."""
    state = process["state"] if process["state"] in NOT_RUNNING else "ended"
    return {**process, "pid": None, "state": state}


def collect(folder: Path) -> dict[str, Any] | None:
    """Return the output of `nightwire status --json`; None where no stack runs."""
    snapshot = take_snapshot(folder)
    if snapshot is None:
        return None
    accounts = snapshot.accounts or []
    keep = ("name", "pid", "state", "restarts", "log")
    return {
        "endpoints": snapshot.state["endpoints"],
        "processes": [{name: one[name] for name in keep} for one in snapshot.state["processes"]],
        "stages": [_stage(total, snapshot.lag) for total in totals(accounts)],
        "discrepancies": discrepancies(accounts),
        "kafka_answers": snapshot.accounts is not None,
        "disk": {"free": snapshot.disk.free, "total": snapshot.disk.total},
    }


def show(folder: Path, *, wide: bool = False) -> int:
    """Print a snapshot; return the exit status."""
    snapshot = take_snapshot(folder)
    console = Console()
    if snapshot is None:
        console.print(f"No stack runs in {folder}.  `nightwire up` starts one{elsewhere()}.", soft_wrap=True)
        return 1
    show_tables(*_page(snapshot, None, wide=wide))
    return 0


def watch(folder: Path, interval: float) -> int:
    """Show snapshots, with rates, until Ctrl-C; return the exit status."""
    before = take_snapshot(folder)
    if before is None:
        return show(folder)
    with Live(Group(*_page(before, None)), screen=Console().is_terminal, auto_refresh=False) as live:
        try:
            while (now := take_snapshot(folder)) is not None:
                live.update(Group(*_page(now, before)), refresh=True)
                before = now
                time.sleep(interval)
        except KeyboardInterrupt:
            return 0
    return show(folder)


def _stage(total: StageTotal, lags: Mapping[str, int]) -> dict[str, Any]:
    row = {"in" if name == "read" else name: value for name, value in vars(total).items()}
    return row | {"lag": lags.get(total.stage)}


def _page(now: Snapshot, before: Snapshot | None, *, wide: bool = False) -> list[RenderableType]:
    parts: list[RenderableType] = [_processes(now.state["processes"]), "", _addresses(now.state), ""]
    if now.disk.free < LEAST:
        why = full_disk(now.disk.folder) or f"{now.disk}: Kafka stops when it is full"
        parts += [Text(why, "red"), ""]
    if now.accounts is None:
        parts.append(Text("Kafka does not answer now; its accounts are not shown.", "yellow"))
        return parts
    parts.append(stage_table(totals(now.accounts), wide=wide))
    if before is not None and before.accounts is not None:
        parts += ["", _rates(now, before)]
    return [*parts, *(Text(f"wrong: {line}", "red") for line in discrepancies(now.accounts))]


def _addresses(state: Mapping[str, Any]) -> Listing:
    """Return where each door of the stack is."""
    found = state["endpoints"]
    public = {f"{name}, for other machines": at for name, at in (found.get("public") or {}).items()}
    doors = {name: at for name, at in found.items() if isinstance(at, str)} | public
    rows = [(name.replace("_", " "), at) for name, at in doors.items()]
    return Listing((Column("door"), Column("address")), rows)


def _processes(processes: Iterable[Mapping[str, Any]]) -> Listing:
    columns = (Column("process"), Column("state"), Column("pid", 1), Column("restarts", 2, number=True))
    rows: list[list[Cell]] = []
    for one in processes:
        state = Text(one["state"], "green" if one["state"] == "healthy" else "yellow")
        rows.append([one["name"], state, str(one["pid"] or "·"), one["restarts"]])
    return Listing(columns, rows)


def _rates(now: Snapshot, before: Snapshot) -> Listing:
    columns = (
        Column("stage"), Column("in/s", 2, number=True), Column("delivered/s", 3, number=True),
        Column("lag", 1, number=True),
    )  # fmt: skip
    rows: list[list[Cell]] = []
    old = {total.stage: total for total in totals(before.accounts or [])}
    seconds = max(now.at - before.at, 1e-3)
    for total in totals(now.accounts or []):
        was = old.get(total.stage, StageTotal(total.stage, 0, 0, 0, 0, 0, 0))
        waiting = now.lag.get(total.stage)
        rates = ((total.read - was.read) / seconds, (total.delivered - was.delivered) / seconds)
        rows.append([total.stage, *(f"{rate:,.1f}" for rate in rates), waiting])
    return Listing(columns, rows)
