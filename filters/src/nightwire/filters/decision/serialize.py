"""Decisions and quotas as JSON, for the disk.  Pure.

An alert is a list in the order of `PassedAlert`.  The names on the disk are older than those in the
code: a new engine goes on where an old one stopped.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nightwire.filters.decision.apply_quotas import Overflow
from nightwire.filters.decision.decision import Decision, DeliveryItem
from nightwire.filters.decision.quota import Candidate, QuotaChanges, Quotas, VisitQuota
from nightwire.filters.model.messages import Pass, PassedAlert, UndecodableRecord, load_counts
from nightwire.filters.model.offsets import Visit
from nightwire.filters.model.transform import load_transform

Json = Any


def dump_decision(decision: Decision) -> str:
    """Return *decision* as JSON."""
    values = {
        "filters": decision.filters,
        "judges": decision.versions,
        "outputs": dict(decision.outputs),
        "shapes": {key: one.as_json() for key, one in decision.transforms.items()},
        "at": decision.at,
        "picks": _dump_items(decision.items),
        "released": {batch: _dump_items(some) for batch, some in decision.released.items()},
        "before": {batch: _dump_items(some) for batch, some in decision.before.items()},
        "cut": _dump_overflow(decision.overflow),
        "dead": [asdict(one) for one in decision.undecodable],
        "counts": [[one.range.topic, one.range.partition, one.as_json()] for one in decision.counts],
        "changes": {**_dump_quotas(decision.changes), "forgotten": decision.changes.forgotten},
    }
    return json.dumps(values, separators=(",", ":"))


def load_decision(text: str) -> Decision:
    """Return the decision of a result of `dump_decision`."""
    values = json.loads(text)
    forgotten = [_visit(one) for one in values["changes"].pop("forgotten")]
    return Decision(
        filters=values["filters"],
        versions=[(key, version) for key, version in values["judges"]],
        outputs=values["outputs"],
        transforms={key: load_transform(one) for key, one in values.get("shapes", {}).items()},
        at=values["at"],
        items=_load_items(values["picks"]),
        released=_load_batches(values["released"]),
        before=_load_batches(values["before"]),
        overflow=_load_overflow(values["cut"]),
        undecodable=[UndecodableRecord(**one) for one in values["dead"]],
        counts=[load_counts(*one) for one in values["counts"]],
        changes=QuotaChanges(**_load_quotas(values["changes"]), forgotten=forgotten),
    )


def dump_quotas(quotas: Quotas) -> str:
    """Return *quotas* as JSON."""
    return json.dumps(_dump_quotas(quotas), separators=(",", ":"))


def load_quotas(text: str) -> Quotas:
    """Return the quotas of a result of `dump_quotas`."""
    return Quotas(**_load_quotas(json.loads(text)))


def _dump_items(items: Iterable[DeliveryItem]) -> Json:
    return [[one.alert, [list(vars(passed).values()) for passed in one.passes]] for one in items]


def _load_items(values: Json) -> list[DeliveryItem]:
    return [
        DeliveryItem(PassedAlert(*alert), tuple(Pass(*one) for one in passes)) for alert, passes in values
    ]


def _load_batches(values: Json) -> dict[int, Sequence[DeliveryItem]]:
    return {int(batch): _load_items(some) for batch, some in values.items()}


def _dump_overflow(overflow: Overflow) -> Json:
    return {
        "hits": overflow.alerts,
        "judges": overflow.filters,
        "hit": overflow.alert_index,
        "judge": overflow.filter_index,
        "rank": overflow.rank,
    }


def _load_overflow(values: Json) -> Overflow:
    alerts = [PassedAlert(*one) for one in values["hits"]]
    filters = [(key, version) for key, version in values["judges"]]
    return Overflow(alerts, filters, values["hit"], values["judge"], values["rank"])


def _visit(value: Json) -> Visit:
    survey, number = value
    return survey, number


def _dump_quotas(quotas: Quotas | QuotaChanges) -> dict[str, Json]:
    return {
        "visits": [[visit, _dump_visit(quota)] for visit, quota in quotas.visits.items()],
        "closing": [[visit, ends] for visit, ends in quotas.closing.items()],
        "released": {batch: _dump_candidates(some) for batch, some in quotas.released.items()},
        "position": quotas.position,
    }


def _load_quotas(values: Json) -> dict[str, Any]:
    return {
        "visits": {_visit(visit): _load_visit(quota) for visit, quota in values["visits"]},
        "closing": {
            _visit(visit): {int(part): last for part, last in ends.items()}
            for visit, ends in values["closing"]
        },
        "released": {int(batch): _load_candidates(some) for batch, some in values["released"].items()},
        "position": values["position"],
    }


def _dump_visit(quota: VisitQuota) -> dict[str, Json]:
    return {
        "since": quota.since,
        "seen": quota.latest,
        "over": quota.levels_ended,
        "taken": {key: sorted(ids) for key, ids in quota.admitted.items()},
        "held": {key: _dump_candidates(some) for key, some in quota.held.items()},
    }


def _load_visit(values: Mapping[str, Any]) -> VisitQuota:
    admitted = {key: frozenset(ids) for key, ids in values["taken"].items()}
    held = {key: _load_candidates(some) for key, some in values["held"].items()}
    return VisitQuota(values["since"], values["seen"], values["over"], admitted, held)


def _dump_candidates(some: Iterable[Candidate]) -> Json:
    return [(one.alert, one.key, one.version, one.rank, one.batch) for one in some]


def _load_candidates(values: Json) -> list[Candidate]:
    return [Candidate(PassedAlert(*alert), *rest) for alert, *rest in values]
