"""`nightwire demo`: a visit and VOEvents go through everything, and are counted in three ways."""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import TopicPartition as TopicPartitionOffset
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from nightwire.core.accounting import discrepancies, read_accounts, totals
from nightwire.core.kafka import TopicPartition, consumer, end_offsets_at, read_until
from nightwire.core.stack.services import nightwire
from nightwire.core.stack.state import checked
from nightwire.core.stack.supervisor import Plan
from nightwire.core.stack.up import describe, detach
from nightwire.schemas.topics import VOEVENTS, alerts, filter_topic

console = Console(highlight=False)

OWNER = "me"
SETTLE = 120.0
"""Longest wait until every stage has accounted for all that came in. [s]"""
ACKNOWLEDGED = "nightwire_filters_copies_acknowledged_total"

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True)
class Counts:
    """Three independent counts of the records of one topic."""

    acknowledged: int
    consumed: int
    accounted: int

    @property
    def agree(self) -> bool:
        """Whether in = out."""
        return self.acknowledged == self.consumed == self.accounted


class DemoError(Exception):
    """A step of the demo failed; the message holds its output."""


def play(folder: Path, visit: int, events: int) -> int:
    """Play a visit of *visit* alerts and *events* VOEvents; return the exit status."""
    began = time.monotonic()
    if detach(Plan(folder), 240.0, quiet=True):
        return 1
    try:
        endpoints = checked(folder)["endpoints"]
        os.environ["NIGHTWIRE_STATE"] = str(folder)  # for the verbs that follow
        topics = _submit_filters()
        agree = _count_a_visit(endpoints, topics, visit, events)
        _show_one(folder, topics)
    except DemoError as error:
        console.print(f"[red]The demo stopped:[/red] {error}")
        return 1
    console.print(f"\n[bold]Where things are[/bold]  (this took {time.monotonic() - began:.0f} s)")
    describe(checked(folder))
    if portal := checked(folder)["endpoints"].get("portal"):
        console.print(f"[bold]To look at the night:[/bold] {portal}")
    console.print("[bold]To stop:[/bold] .venv/bin/nightwire down")
    return 0 if agree else 1


def _submit_filters() -> list[str]:
    """Submit the example notebooks, all at once; return their topics."""
    examples = _examples()
    with console.status("submitting the example filters"), ThreadPoolExecutor() as pool:
        for output in pool.map(_submit, examples):
            console.print(output.splitlines()[0])
    return [filter_topic(OWNER, path.stem) for path in examples]


def _submit(path: Path) -> str:
    return _run("filter", "submit", str(path), "--name", path.stem, "--owner", OWNER, show_progress=False)


def _count_a_visit(endpoints: Mapping[str, Any], topics: Sequence[str], visit: int, events: int) -> bool:
    kafka = endpoints["kafka"]
    everywhere = [alerts("sim"), VOEVENTS, *topics]
    ends, accounts, sent = end_offsets_at(kafka, everywhere), _accounted(kafka), _acknowledged(endpoints)
    reads = _read(kafka)
    written = json.loads(_run("simulate", "--visits", "1", "--alerts", str(visit), "--json"))
    fresh = str(sum(end for (topic, _), end in ends.items() if topic == VOEVENTS))
    answered = json.loads(_run("send", "--samples", str(events), "--first-sample", fresh, "--json"))
    _settle(kafka, accounts, written["acknowledged"], answered["acked"])
    _settle_slow_lanes(endpoints, topics, reads, sent, accounts, written["acknowledged"])
    consumed = _consumed(kafka, everywhere, ends)
    now, sent_now = _accounted(kafka), _acknowledged(endpoints)
    grown = {stage: now[stage] - accounts.get(stage, 0) for stage in now}
    rows = {
        alerts("sim"): Counts(written["acknowledged"], consumed[alerts("sim")], grown.get("producer", 0)),
        VOEVENTS: Counts(answered["acked"], consumed[VOEVENTS], grown.get("gateway", 0)),
    } | {
        topic: Counts(sent_now.get(topic, 0) - sent.get(topic, 0), consumed[topic], grown.get(topic, 0))
        for topic in topics
    }
    _show_counts(rows, discrepancies(read_accounts(kafka)))
    return all(counts.agree for counts in rows.values())


def _settle(kafka: str, before: Mapping[str, int], written: int, answered: int) -> None:
    """Wait until the filters have judged the visit and the gateway has accounted for its events."""
    deadline = time.monotonic() + SETTLE
    with console.status("waiting until every stage has accounted for what came in"):
        while time.monotonic() < deadline:
            read, now = _read(kafka), _accounted(kafka)
            judged = read.get("filters", 0) >= read.get("producer", 0)
            if judged and now.get("gateway", 0) - before.get("gateway", 0) >= answered:
                return
            time.sleep(0.3)
    console.print(f"[yellow]not all was accounted for after {SETTLE:g} s (of {written} alerts)[/yellow]")


def _settle_slow_lanes(
    endpoints: Mapping[str, Any],
    topics: Sequence[str],
    reads: Mapping[str, int],
    sent: Mapping[str, int],
    accounts: Mapping[str, int],
    written: int,
) -> None:
    """Wait until the filters that are judged behind the others are done, too, and counted.

    Args:
        endpoints: Of the stack.
        topics: Of the filters.
        reads: What each had judged before; and what was
        sent: to each topic, as the metrics say, and
        accounts: as the accounts do.
        written: Alerts of the visit.
    """
    deadline, kafka = time.monotonic() + SETTLE, endpoints["kafka"]
    with console.status("waiting for the slow lane"):
        while time.monotonic() < deadline:
            read, now, told = _read(kafka), _accounted(kafka), _acknowledged(endpoints)
            judged = all(read.get(one, 0) - reads.get(one, 0) >= written for one in topics)
            counted = all(
                told.get(one, 0) - sent.get(one, 0) >= now.get(one, 0) - accounts.get(one, 0)
                for one in topics
            )
            if judged and counted:
                return
            time.sleep(0.3)


def _show_counts(rows: Mapping[str, Counts], wrong: Sequence[str]) -> None:
    console.print("\n[bold]In = out[/bold], from three independent counts:")
    table = Table("topic", box=None, pad_edge=False, header_style="bold")
    for name in ("acknowledged", "consumed", "accounted"):
        table.add_column(name, justify="right")
    table.add_column("agree")
    for topic, counts in rows.items():
        numbers = (f"{number:,}" for number in (counts.acknowledged, counts.consumed, counts.accounted))
        table.add_row(topic, *numbers, "[green]✓[/green]" if counts.agree else "[red]no[/red]")
    console.print(table)
    for line in wrong:
        console.print(f"[red]wrong: {line}[/red]")


def _show_one(folder: Path, topics: Sequence[str]) -> None:
    stamps = folder / "demo-stamps"
    console.print("\n[bold]One filtered alert[/bold], as its owner reads it:")
    for topic in topics:
        words = ["subscribe", topic, "--last", "1", "--no-follow", "--stamps", str(stamps)]
        output = _run(*words, show_progress=False)
        if output.strip():
            console.print(f"$ nightwire {' '.join(words)}", style="dim", soft_wrap=True)
            console.print(output.rstrip(), markup=False, soft_wrap=True)
            newest = sorted(stamps.glob("*.png"), key=lambda path: path.stat().st_mtime)[-3:]
            console.print(f"its stamps: {' '.join(map(str, newest))}", soft_wrap=True)
            return


def _run(*words: str, show_progress: bool = True) -> str:
    """Run a verb, perhaps with its progress shown; return its output.

    Raises:
        DemoError: It failed.
    """
    stderr = None if show_progress else subprocess.PIPE
    done = subprocess.run(nightwire(*words), stdout=subprocess.PIPE, stderr=stderr, text=True, check=False)
    if done.returncode:
        last_words = f"{done.stdout}{done.stderr or ''}"
        raise DemoError(f"`nightwire {' '.join(words)}` ended with {done.returncode}\n{last_words}")
    return done.stdout


def _consumed(kafka: str, topics: Sequence[str], since: Offsets) -> Counter[str]:
    """Count the records of *topics* from the offsets *since* to their present ends."""
    todo = {
        partition: end
        for partition, end in end_offsets_at(kafka, topics).items()
        if end > since.get(partition, 0)
    }
    with consumer(kafka, enable_partition_eof=True) as reader:
        reader.assign([TopicPartitionOffset(*partition, since.get(partition, 0)) for partition in todo])
        return Counter(str(message.topic()) for message in read_until(reader, todo))


def _read(kafka: str) -> dict[str, int]:
    """Return how many records each stage, and each filter, has judged."""
    return {total.stage: total.read for total in totals(read_accounts(kafka))}


def _accounted(kafka: str) -> dict[str, int]:
    return {total.stage: total.delivered for total in totals(read_accounts(kafka))}


def _acknowledged(endpoints: Mapping[str, Any]) -> dict[str, int]:
    """Return how many copies Kafka acknowledged to the filter engine, by topic."""
    page = httpx.get(endpoints["metrics"]["filters"], timeout=10).text
    samples = (sample for family in text_string_to_metric_families(page) for sample in family.samples)
    return {one.labels["topic"]: int(one.value) for one in samples if one.name == ACKNOWLEDGED}


def _examples() -> list[Path]:
    """Return the example notebooks of the clone that this runs from.

    Raises:
        DemoError: It does not run from a clone.
    """
    folder = Path(__file__).parents[5] / "filters" / "notebooks"
    found = sorted(folder.glob("*.ipynb"))
    if not found:
        raise DemoError(f"no example notebooks in {folder}: the demo runs from a clone of the repository")
    return found
