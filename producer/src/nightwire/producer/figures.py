"""Figures by which alerts are compared: sizes, compression, nulls, lengths of histories."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

Alert = Mapping[str, Any]
Compress = Callable[[bytes], bytes]

QUANTILES = {"p5": 0.05, "p50": 0.5, "p95": 0.95, "max": 1.0}


def rubin_figures() -> dict[str, Any]:
    """Return the figures of 32 real Rubin alerts of schema 11.0 (2025-12 to 2026-06)."""
    text = (files("nightwire.producer") / "rubin_figures.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]


def figures(
    alerts: Iterable[tuple[Alert, bytes]], compressors: Mapping[str, Compress]
) -> dict[str, float | dict[str, float]]:
    """Return the figures of *alerts*, each with its Avro body.

    Args:
        alerts: At least one.
        compressors: By name; each alert is compressed for itself.

    Returns:
        ``leaves``, ``bytes``, ``sources`` and ``forced`` (previous detections and forced
        measurements) by quantile; ``nulls``, the mean share of an alert's leaves that are null, and
        ``all_nulls``, their share of all leaves; for each compressor the mean ratio (compressed
        over plain).
    """
    rows = [_row(alert, body, compressors) for alert, body in alerts]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    counted = {name: quantiles(columns[name]) for name in ("leaves", "bytes", "sources", "forced")}
    means = {name: float(np.mean(columns[name])) for name in ("nulls", *compressors)}
    all_nulls = sum(row["leaves"] * row["nulls"] for row in rows) / sum(columns["leaves"])
    return {"alerts": float(len(rows)), **counted, **means, "all_nulls": all_nulls}


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """Return p5, p50, p95 and the maximum of *values*, interpolated between ranks."""
    return {name: float(np.quantile(values, share)) for name, share in QUANTILES.items()}


def leaves(value: Any) -> Iterator[Any]:
    """Yield every value within *value* that is neither record nor array."""
    if isinstance(value, Mapping):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def _row(alert: Alert, body: bytes, compressors: Mapping[str, Compress]) -> dict[str, float]:
    parts = list(leaves(alert))
    return {
        "leaves": len(parts),
        "bytes": len(body),
        "sources": len(alert["prvDiaSources"] or ()),
        "forced": len(alert["prvDiaForcedSources"] or ()),
        "nulls": sum(part is None for part in parts) / len(parts),
    } | {name: len(compress(body)) / len(body) for name, compress in compressors.items()}
