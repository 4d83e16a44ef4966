"""What transforms make of alerts: what they drop, mean and declare; what does not fit."""

import io
import math
from typing import Any, cast

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from filters.tests.helpers.accepted import accepted
from nightwire.filters.admission.transform_check import shape_mismatches, transform_objections
from nightwire.filters.authoring.extract import extract
from nightwire.filters.decision.apply_quotas import BatchContext
from nightwire.filters.decision.decision import decide
from nightwire.filters.decision.quota import Quotas
from nightwire.filters.decision.serialize import dump_decision, load_decision
from nightwire.filters.delivery.transform_writer import TransformPlan, TransformWriter
from nightwire.filters.evaluation.results import Verdict, added_rows, passed_rows
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import compile_request
from nightwire.filters.model.live_filter import LiveFilter
from nightwire.filters.model.messages import judged_batch, rows_to_arrow
from nightwire.filters.model.transform import (
    AddedField,
    Transform,
    declared_fields,
    light_form,
    load_transform,
    mean,
    misfit,
    parse_added,
)
from nightwire.filters.reading.alerts import AlertIdentities
from nightwire.schemas import (
    SIM_ALERT_ID,
    Codec,
    DecodeError,
    derived_schema,
    kept_fields,
    sim_alert_schema,
    survey,
    surveys,
    wire,
)

ADDS = (
    AddedField("score", "float"), AddedField("label", "str"), AddedField("points", "int"),
    AddedField("sure", "bool"), AddedField("curve", "list[float]"),
)  # fmt: skip


def test_what_is_added_is_read_from_the_source_and_never_run() -> None:
    source = 'ADDS = {"score": float, "label": (str, "What it is."), "curve": list[float]}\ndef f(a): ...\n'
    assert declared_fields(source) == (
        AddedField("score", "float"),
        AddedField("label", "str", "What it is."),
        AddedField("curve", "list[float]"),
    )


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def transform(a): return {}", "declares what it adds, as ADDS = {"),
        ("ADDS = make()", "declares what it adds"),
        ("ADDS = {}", "declares what it adds"),
        ('ADDS = {"score": complex}', "score is declared as complex; types are float, int"),
        ('ADDS = {"my score": float}', "is no name of a field"),
        ("ADDS = {**other}", "is no name of a field"),
    ],
)
def test_a_declaration_that_cannot_be_read_is_refused(source: str, said: str) -> None:
    with pytest.raises(FilterError, match=said.replace("{", r"\{").replace("(", r"\(")):
        declared_fields(source)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({"score": 0.5, "label": "SN", "points": 3, "sure": True, "curve": [1.0, 2]}, None),
        ({"score": float("nan"), "curve": []}, None),
        ({"score": 1, "label": None}, None),
        ({}, None),
        ({"points": 1.0}, "transform gave float 1.0 for points, declared as int"),
        ({"points": True}, "transform gave bool True for points, declared as int"),
        ({"points": 1 << 63}, "for points, declared as int"),
        ({"sure": 1}, "transform gave int 1 for sure, declared as bool"),
        ({"label": 5}, "for label, declared as str"),
        ({"label": "\ud800"}, "for label, declared as str"),
        ({"curve": [1.0, None]}, "transform gave a list of float 1.0 for curve"),
        ({"grade": 1}, "transform gave 'grade', which ADDS does not declare"),
        ([1], "transform gave a list of int 1, not a dictionary"),
    ],
)
def test_values_are_as_declared_or_say_which_is_not(values: Any, wrong: str | None) -> None:
    found = misfit(ADDS, values)
    assert found == wrong if wrong is None else wrong in str(found)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"score": 1', "\x00"])
def test_what_is_no_json_is_wrong(text: str) -> None:
    assert parse_added(ADDS, text) == "transform gave what is no JSON"


def test_a_mean_leaves_out_what_is_no_number() -> None:
    assert mean([1.0, None, 3, float("nan"), float("inf"), -99999.0], [-99999.0]) == 2.0
    assert mean([]) is None


def test_a_shape_survives_the_disk() -> None:
    transform = Transform(("cutoutScience",), ("prvDiaSources.psfFlux",), ADDS)
    assert load_transform(transform.as_json()) == transform
    assert transform
    assert not Transform()


def test_means_and_what_is_computed_are_described_in_the_schema() -> None:
    transform = Transform(
        means=("prvDiaSources.psfFlux", "prvDiaSources.snr"),
        adds=(AddedField("label", "str", "What it is."),),
    )
    count, flux, snr, label = transform.fields()
    assert [one["name"] for one in (count, flux, snr)] == [
        "prvDiaSourcesCount", "prvDiaSourcesMeanPsfFlux", "prvDiaSourcesMeanSnr",
    ]  # fmt: skip
    assert label == {"name": "label", "type": ["null", "string"], "default": None, "doc": "What it is."}
    assert flux["type"] == ["null", "double"]
    assert "prvDiaSources" in flux["doc"]


@pytest.mark.parametrize("name", surveys())
def test_a_light_alert_has_no_stamps_and_no_histories(name: str) -> None:
    light, about = light_form(name), survey(name).description
    assert {one.path for one in about.history} <= set(light["drop"])
    assert all(path.partition(".")[0] in light["drop"] for path in about.stamps.values())
    assert len(light["means"]) == len(about.history)


def test_an_alert_is_made_over(make_alert: Any) -> None:
    """Dropped fields are gone, the means are there, what is left is as it was, and a view of it
    works.
    """
    schema, transform = (
        sim_alert_schema(),
        Transform(**{key: tuple(value) for key, value in light_form("sim").items()}),
    )
    made = derived_schema(schema, transform.drop, transform.fields())
    past = {**make_alert(1)["diaSource"], "psfFlux": 10.0}
    alert = {
        **make_alert(5, 400.0),
        "prvDiaSources": [past, {**past, "psfFlux": 20.0}],
        "cutoutScience": b"fits",
    }
    plan = TransformPlan(
        Codec(schema),
        kept_fields(schema, transform.drop),
        dict.fromkeys(transform.means, ()),
        Codec(made),
        101_000,
    )
    number, body = wire.unframe(plan.value(Codec(schema).encode(alert), {}))
    found = Codec(made).decode(body)
    assert number == 101_000
    assert (found["prvDiaSourcesCount"], found["prvDiaSourcesMeanPsfFlux"]) == (2, 15.0)
    assert found["diaSource"] == Codec(schema).decode(Codec(schema).encode(alert))["diaSource"]
    assert found.keys().isdisjoint(transform.drop)
    view = survey("sim").view(found)
    assert (view.id, view.flux, list(view.history), view.stamps) == (5, 400.0, [], {})


REQUEST: dict[str, Any] = {
    "survey": "sim", "language": "python", "output": "broker.fink.light", "choice": "first", "cap": 0,
    "drop": [], "means": [], "transform": "",
    "source": 'ADDS = {"score": float}\ndef keep(a): return True\ndef transform(a): return {"score": 1.0}\n',
}  # fmt: skip


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"drop": ["cutoutScience"]}, None),
        ({"transform": "transform"}, None),
        (
            {"drop": ["cutoutScience"], "output": ""},
            "a transform writes to broker.<broker>.<stream>, never to filter",
        ),
        ({"means": ["prvDiaSources.psfFlux"], "choice": "best", "cap": 5}, "holds nothing for --choice best"),
        ({"drop": ["diaSource"]}, "diaSource tells which alert it is: it cannot be dropped"),
        ({"transform": "transform", "language": "sql"}, "what is added is computed in python"),
    ],
    ids=["drop", "code", "no output", "best", "id", "sql"],
)
def test_a_transform_that_cannot_be_is_refused_by_name(about: dict[str, Any], said: str | None) -> None:
    wrong = transform_objections({**REQUEST, **about})
    assert (said in wrong[0]) if said else wrong == []


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"transform": "other"}, "there is no function other"),
        ({"source": "def keep(a): return 1\ndef transform(a): ..."}, "declares what it adds"),
    ],
)
def test_a_transform_without_its_parts_does_not_compile(about: dict[str, Any], said: str) -> None:
    with pytest.raises(FilterError, match=said):
        compile_request({**REQUEST, "entry": "keep", "transform": "transform", **about})


def test_other_filters_are_no_transforms() -> None:
    assert transform_objections({**REQUEST, "output": "", "choice": "best"}) == []


def test_what_fits_no_schema_is_named() -> None:
    codecs = [Codec(sim_alert_schema())]
    transform = Transform(
        ("cutoutScience", "nothing"), ("diaSource.psfFlux",), (AddedField("diaSource", "float"),)
    )
    assert list(shape_mismatches(transform, codecs)) == [
        "no field nothing in these alerts",
        "diaSource.psfFlux is no number in an array of records, so it has no mean",
        "ADDS: diaSource is a field of these alerts: take another name, or --drop it",
    ]
    assert not list(
        shape_mismatches(Transform(**{key: tuple(value) for key, value in light_form("sim").items()}), codecs)
    )


def test_a_transform_travels_with_what_it_declares_and_uses() -> None:
    code = (
        "import numpy as np\nprint('a notebook')\nSCALE = 2.0\n"
        'ADDS = {"score": (float, "How sure."), "curve": list[float]}\n'
        "def keep(alert):\n    return alert.snr > 5\n"
        "def transform(alert):\n    return {'score': SCALE * np.log(alert.snr)}\n"
    )
    source = extract(code, "keep", also=["transform", "ADDS"])
    assert "print" not in source
    assert "SCALE = 2.0" in source
    assert declared_fields(source) == (
        AddedField("score", "float", "How sure."),
        AddedField("curve", "list[float]"),
    )
    with pytest.raises(FilterError, match="there is no ADDS, which a transform needs beside keep"):
        extract("def keep(a): return 1\ndef transform(a): return {}\n", "keep", also=["transform", "ADDS"])


def test_what_is_added_comes_through_to_what_is_sent_and_survives_the_disk() -> None:
    """From a worker's verdict, over the rows of a batch and its decision, to the copy."""
    known = AlertIdentities(["alerts.sim"] * 2, [0, 0], [5, 6], [1, 2], [7, 7], ["a", "b"])
    passed, rank = np.array([0, 1]), np.full(2, np.nan)
    said = [Verdict(0, passed, rank, added={0: "{}", 1: '{"score":1.0}'}), Verdict(1, passed, rank)]
    rows = [passed_rows(said, known), rows_to_arrow(added_rows(said, known))]
    about: dict[str, Any] = {"output": "broker.fink.x", "cap": 0, "drop": ("cutoutScience",)}
    code = REQUEST["source"]
    filters = [
        accepted(LiveFilter("fink", "x", 1, "sim", code, "keep", transform="transform", **about)),
        LiveFilter("ann", "y", 1, "sim", "", "keep"),
    ]
    decision = decide(judged_batch(pa.Table.from_batches(rows)), Quotas(), filters, BatchContext(0))
    assert [[one.added for one in item.passes] for item in decision.items] == [
        ["{}", ""],
        ['{"score":1.0}', ""],
    ]
    assert decision.transforms == {
        "fink/x": Transform(("cutoutScience",), (), (AddedField("score", "float"),))
    }
    assert load_decision(dump_decision(decision)) == decision


class Registry:
    """Gives schemas ids in turn, equal ones the same."""

    def __init__(self) -> None:
        self.levels: dict[str, str] = {}
        self.schemas: list[tuple[str, Any]] = []

    def codec(self, number: int) -> Codec:
        """Return the codec of simulated alerts, always the same."""
        assert number == SIM_ALERT_ID
        return SIM

    def compatibility(self, subject: str) -> str:
        """Return a subject's level."""
        return self.levels.get(subject, "BACKWARD")

    def set_compatibility(self, level: str, subject: str) -> None:
        """Set it."""
        self.levels[subject] = level

    def register(self, subject: str, schema: Any) -> int:
        """Return a schema's id."""
        self.schemas.append((subject, schema))
        return 101_000 + min(at for at, (_, other) in enumerate(self.schemas) if other == schema)


SIM = Codec(sim_alert_schema())


def test_a_transform_writer_registers_once_and_transforms_that_are_alike_share_what_it_made(
    make_alert: Any,
) -> None:
    registry = Registry()
    writer = TransformWriter(cast("Any", registry))
    transform, value = Transform(("cutoutScience",)), wire.frame(SIM_ALERT_ID, SIM.encode(make_alert(5)))
    first = writer.value(value, "broker.fink.a", "sim", transform, "")
    assert writer.value(value, "broker.anna.b", "sim", transform, "") is first
    other = wire.frame(SIM_ALERT_ID, SIM.encode(make_alert(6)))
    assert writer.value(other, "broker.fink.a", "sim", transform, "") != first
    assert [subject for subject, _ in registry.schemas] == ["broker.fink.a-value", "broker.anna.b-value"]
    assert set(registry.levels.values()) == {"NONE"}
    number, body = wire.unframe(first)
    assert number == 101_000
    assert Codec(registry.schemas[0][1]).decode(body)["diaSource"]["diaSourceId"] == 5


def test_an_alert_in_a_container_is_made_over_too(make_alert: Any) -> None:
    container = io.BytesIO()
    fastavro.writer(container, sim_alert_schema(), [make_alert(5)])
    registry, transform = Registry(), Transform(("cutoutScience",), (), (AddedField("score", "float"),))
    made = TransformWriter(cast("Any", registry)).value(
        container.getvalue(), "broker.fink.a", "sim", transform, '{"score": NaN}'
    )
    alert = Codec(registry.schemas[0][1]).decode(wire.unframe(made)[1])
    assert "cutoutScience" not in alert
    assert math.isnan(alert["score"])


def test_what_is_no_list_of_numbers_in_some_version_has_no_mean_there(make_alert: Any) -> None:
    registry, transform = Registry(), Transform((), ("diaSource.ra", "prvDiaSources.band"))
    value = wire.frame(SIM_ALERT_ID, SIM.encode(make_alert(5)))
    made = TransformWriter(cast("Any", registry)).value(value, "broker.fink.a", "sim", transform, "")
    alert = Codec(registry.schemas[0][1]).decode(wire.unframe(made)[1])
    assert (alert["diaSourceMeanRa"], alert["prvDiaSourcesMeanBand"]) == (None, None)


def test_a_malformed_alert_is_not_made_over(make_alert: Any) -> None:
    value = wire.frame(SIM_ALERT_ID, SIM.encode(make_alert(5))[:-3])
    with pytest.raises(DecodeError):
        TransformWriter(cast("Any", Registry())).value(
            value, "broker.fink.a", "sim", Transform((), ("prvDiaSources.psfFlux",)), ""
        )
