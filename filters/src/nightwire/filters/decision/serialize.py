"""Decisions and places as JSON, for the disk.  Pure.

What has a name in the code has the same name there; an alert is a list in the order of `PassedAlert`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from nightwire.filters.decision.decision import Decision, DeliveryItem
from nightwire.filters.decision.quota import Candidate, QuotaChanges, Quotas, VisitQuota
from nightwire.filters.decision.select import Overflow
from nightwire.filters.model.messages import Pass, PassedAlert, RangeCounts, UndecodableRecord, load_counts
from nightwire.filters.model.offsets import Visit
from nightwire.filters.model.transform import load_transform

Json = Any


def dump_decision(decision: Decision) -> str:
    """Return *decision* as JSON."""
    said = {
        "filters": decision.filters,
        "judges": decision.judges,
        "outputs": dict(decision.outputs),
        "shapes": {key: shape.as_json() for key, shape in decision.shapes.items()},
        "at": decision.at,
        "picks": _picks(decision.picks),
        "released": {batch: _picks(some) for batch, some in decision.released.items()},
        "before": {batch: _picks(some) for batch, some in decision.before.items()},
        "cut": vars(decision.cut),
        "dead": [asdict(one) for one in decision.dead],
        "counts": [_counts(one) for one in decision.counts],
        "changes": {
            **_caps(decision.changes),
            "forgotten": decision.changes.forgotten,
        },
    }
    return json.dumps(said, separators=(",", ":"))


def load_decision(text: str) -> Decision:
    """Return the decision in what `dump_decision` made."""
    said = json.loads(text)
    cut = said["cut"]
    forgotten = [_visit(one) for one in said["changes"].pop("forgotten")]
    return Decision(
        filters=said["filters"],
        judges=[(key, version) for key, version in said["judges"]],
        outputs=said["outputs"],
        shapes={key: load_transform(shape) for key, shape in said.get("shapes", {}).items()},
        at=said["at"],
        picks=_picked(said["picks"]),
        released=_by_batch(said["released"]),
        before=_by_batch(said["before"]),
        cut=Overflow(**{**cut, "hits": _hits(cut["hits"]), "judges": [(key, n) for key, n in cut["judges"]]}),
        dead=[UndecodableRecord(**one) for one in said["dead"]],
        counts=[load_counts(*one) for one in said["counts"]],
        changes=QuotaChanges(**_parts(said["changes"]), forgotten=forgotten),
    )


def dump_quotas(caps: Quotas) -> str:
    """Return *caps* as JSON."""
    return json.dumps(_caps(caps), separators=(",", ":"))


def load_quotas(text: str) -> Quotas:
    """Return the places in what `dump_quotas` made."""
    return Quotas(**_parts(json.loads(text)))


def _counts(one: RangeCounts) -> Json:
    first, end = one.range.first, one.range.end
    return [one.range.topic, one.range.partition, {**vars(one), "range": [first, end]}]


def _picks(picks: Iterable[DeliveryItem]) -> Json:
    return [[one.hit, [list(vars(passed).values()) for passed in one.passes]] for one in picks]


def _picked(said: Json) -> list[DeliveryItem]:
    return [DeliveryItem(PassedAlert(*hit), tuple(Pass(*one) for one in passes)) for hit, passes in said]


def _by_batch(said: Json) -> dict[int, Sequence[DeliveryItem]]:
    return {int(batch): _picked(some) for batch, some in said.items()}


def _hits(said: Json) -> list[PassedAlert]:
    return [PassedAlert(*one) for one in said]


def _visit(said: Json) -> Visit:
    survey, number = said
    return survey, number


def _caps(caps: Quotas | QuotaChanges) -> dict[str, Json]:
    return {
        "visits": [[visit, _places(places)] for visit, places in caps.visits.items()],
        "closing": [[visit, ends] for visit, ends in caps.closing.items()],
        "released": {batch: _candidates(some) for batch, some in caps.released.items()},
        "position": caps.position,
    }


def _parts(said: Json) -> dict[str, Any]:
    closing = {
        _visit(visit): {int(part): last for part, last in ends.items()} for visit, ends in said["closing"]
    }
    return {
        "visits": {_visit(visit): _to_places(places) for visit, places in said["visits"]},
        "closing": closing,
        "released": {int(batch): _to_candidates(some) for batch, some in said["released"].items()},
        "position": said["position"],
    }


def _places(places: VisitQuota) -> dict[str, Json]:
    return {
        **vars(places),
        "taken": {key: sorted(ids) for key, ids in places.taken.items()},
        "held": {key: _candidates(some) for key, some in places.held.items()},
    }


def _to_places(said: Mapping[str, Any]) -> VisitQuota:
    taken = {key: frozenset(ids) for key, ids in said["taken"].items()}
    held = {key: _to_candidates(some) for key, some in said["held"].items()}
    return VisitQuota(**{**said, "taken": taken, "held": held})


def _candidates(some: Iterable[Candidate]) -> Json:
    return [(one.hit, one.key, one.version, one.rank, one.batch) for one in some]


def _to_candidates(said: Json) -> list[Candidate]:
    return [Candidate(PassedAlert(*hit), *rest) for hit, *rest in said]
