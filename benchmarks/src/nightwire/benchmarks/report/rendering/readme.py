"""The chosen figures of each scenario, and the README's block that is made of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nightwire.benchmarks.report.content.formatting import Entry, Result, headline, machines
from nightwire.benchmarks.report.rendering.templates import render

CHOSEN: Mapping[str, Sequence[str]] = {
    "codec": ("native_encode_us", "native_decode_us"),
    "dmtn028": ("volume_1000_with_stamps_send_seconds", "flushing_batched_alerts_per_second"),
    "faults": ("engine_alerts_first_seconds", "kafka_lost"),
    "filters": ("quick_lane_seconds_102_habits", "quick_latency_p50_ms"),
    "gateway": ("single_c64_per_second", "latency_s1000_own_ms"),
    "messages": ("latency_256_bytes_p50_ms", "one_to_one_1_mib_megabytes_per_second"),
    "night": ("even_shutter_p99_seconds", "even_within_60_seconds"),
    "stretch": ("three_visits_slowest_seconds",),
    "typed": ("typed_1_mb_megabytes_per_second", "range_run_us"),
    "visit": ("encode_produce_consume_decode_seconds", "latency_p50_ms"),
}
"""Figures that open the report, by scenario; of one that is not here, the first of its headline."""
IN_THE_README = (
    "native_decode_us",
    "encode_produce_consume_decode_seconds",
    "latency_p50_ms",
    "single_c64_per_second",
    "kafka_lost",
)
"""Those of them that the README shows."""
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


class BlockError(Exception):
    """A file has no block to write the figures into; the message names it."""


def chosen_figures(result: Result) -> list[Entry]:
    """Return the chosen entries of *result*, else the headline's first with a ratio."""
    chosen = CHOSEN.get(result["scenario"], ())
    found = [entry for entry in result["results"] if entry["name"] in chosen]
    if found:
        return found
    first = headline(result) or result["results"]
    return [entry for entry in first if entry["ratio"] is not None][:1] or list(first[:1])


def readme_block(results: Sequence[Result]) -> str:
    """Return the README's block of figures, markers included."""
    chosen = [entry for result in results for entry in chosen_figures(result)]
    shown = [entry for entry in chosen if entry["name"] in IN_THE_README] or chosen
    return render("readme.md.j2", begin=BEGIN, end=END, entries=shown, machines=machines(results))


def readme_of(folder: Path) -> Path | None:
    """Return the README of the clone that has the results in *folder*; None without a block."""
    path = folder.resolve().parents[1] / "README.md"
    return path if path.is_file() and BEGIN in path.read_text(encoding="utf-8") else None


def rewrite(path: Path, results: Sequence[Result]) -> None:
    """Write the block of *results* into the file at *path*.

    Raises:
        BlockError: It has no place for it.
    """
    text = path.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise BlockError(f"{path} has no {BEGIN} … {END} to write the figures into")
    path.write_text(text[:begin] + readme_block(results) + text[end + len(END) :], encoding="utf-8")
