"""Alerts as VOEvent 2.0: a pure function of the record; all gateways make the same bytes."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from nightwire.gateway.voevent.times import utc_from_mjd_tai
from nightwire.schemas import AlertView

_OPEN = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<voe:VOEvent xmlns:voe="http://www.ivoa.net/xml/VOEvent/v2.0"'
    ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    ' xsi:schemaLocation="http://www.ivoa.net/xml/VOEvent/v2.0'
    ' http://www.ivoa.net/xml/VOEvent/VOEvent-v2.0.xsd"'
)


@dataclass(frozen=True)
class Quantity:
    """One Param: its value is left out where the alert has none."""

    name: str
    value: object
    unit: str = ""
    ucd: str = ""
    kind: str = "float"


def alert_ivorn(topic: str, survey: str, alert_id: object) -> str:
    """Return the identifier of an alert as a VOEvent: it says which topic it came from."""
    return f"ivo://nightwire/{topic}#{survey}-{alert_id}"


def alert_voevent(view: AlertView, *, survey: str, topic: str, written: int) -> bytes:
    """Return the alert *view* as a VOEvent 2.0 packet.

    Args:
        view: The alert.
        survey: Its survey.
        topic: Where its record lies: a filter's topic.
        written: The record's time in Kafka, which dates the packet. [ms since 1970]
    """
    ivorn = alert_ivorn(topic, survey, view.id)
    date = datetime.fromtimestamp(written / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    parts = [
        f'{_OPEN} ivorn={quoteattr(ivorn)} role="observation" version="2.0">',
        f"<Who><AuthorIVORN>ivo://nightwire/{escape(topic)}</AuthorIVORN><Date>{date}</Date></Who>",
        _what(view, survey, topic),
        _where_when(view, survey_template(survey).error(view)),
        _how(survey, topic),
        _citations(view, survey, topic),
        "</voe:VOEvent>\n",
    ]
    return "".join(parts).encode()


def _what(view: AlertView, survey: str, topic: str) -> str:
    params = [
        Quantity("survey", survey, kind="string"),
        Quantity("topic", topic, kind="string"),
        Quantity("alert_id", view.id, ucd="meta.id", kind="string"),
        Quantity("object_id", view.object_id, ucd="meta.id;src", kind="string"),
        Quantity("solar_system_id", view.solar_system_id, ucd="meta.id;src", kind="string"),
        Quantity("visit", view.visit, ucd="meta.id;obs", kind="string"),
        Quantity("band", view.band, ucd="instr.bandpass", kind="string"),
    ]
    measured = [
        Quantity("flux", view.flux, "nJy", "phot.flux.density"),
        Quantity("flux_error", view.flux_error, "nJy", "stat.error;phot.flux.density"),
        Quantity("magnitude", view.magnitude, "mag", "phot.mag"),
        Quantity("snr", view.snr, "", "stat.snr"),
    ]
    more = survey_template(survey).numbers(view)
    params += [Quantity(extra.name, value, extra.unit, extra.ucd) for extra, value in more]
    group = "".join(map(_param, measured))
    photometry = f'<Group name="photometry" type="difference">{group}</Group>' if group else ""
    return f"<What>{''.join(map(_param, params))}{photometry}</What>"


def _param(one: Quantity) -> str:
    if one.value is None:
        return ""
    value = repr(one.value) if isinstance(one.value, float) else str(one.value)
    attributes = {"name": one.name, "ucd": one.ucd, "value": value, "unit": one.unit, "dataType": one.kind}
    return f"<Param {' '.join(f'{name}={quoteattr(text)}' for name, text in attributes.items() if text)}/>"


def _how(survey: str, topic: str) -> str:
    time = survey_template(survey).time
    when = f"; its time is the {time}" if time else ""
    text = f"Alert of survey {survey} from {topic}{when}"
    return f"<How><Description>{escape(text)}</Description></How>"


def _citations(view: AlertView, survey: str, topic: str) -> str:
    """Cite the object's earlier alerts as packets of *topic*, whether these passed or not."""
    ivorns = [alert_ivorn(topic, survey, one) for one in survey_template(survey).earlier_ids(view)]
    cited = "".join(f'<EventIVORN cite="followup">{escape(ivorn)}</EventIVORN>' for ivorn in ivorns)
    return f"<Citations>{cited}</Citations>" if cited else ""


def _where_when(view: AlertView, error: float) -> str:
    if view.ra is None or view.dec is None:
        return ""
    time = ""
    if view.mjd_tai is not None:
        utc = utc_from_mjd_tai(view.mjd_tai)
        time = f'<Time unit="s"><TimeInstant><ISOTime>{utc}</ISOTime></TimeInstant></Time>'
    return (
        "<WhereWhen><ObsDataLocation><ObservatoryLocation/>"
        '<ObservationLocation><AstroCoordSystem id="UTC-ICRS-TOPO"/>'
        f'<AstroCoords coord_system_id="UTC-ICRS-TOPO">{time}'
        '<Position2D unit="deg"><Name1>RA</Name1><Name2>Dec</Name2>'
        f"<Value2><C1>{view.ra!r}</C1><C2>{view.dec!r}</C2></Value2>"
        f"<Error2Radius>{error!r}</Error2Radius></Position2D></AstroCoords></ObservationLocation>"
        "</ObsDataLocation></WhereWhen>"
    )


FOLDER = files("nightwire.gateway.voevent") / "templates"
MOST_EARLIER = 10
"""Most earlier packets that one cites."""


@dataclass(frozen=True)
class ExtraParam:
    """One more Param: a number of the alert's source, by the name that the survey gives it."""

    name: str
    unit: str = ""
    ucd: str = ""


@dataclass(frozen=True)
class SurveyTemplate:
    """The Params of one survey's alerts beside those of all surveys, and where they are found.

    Attributes:
        source: Field of the measurement that made the alert.
        earlier: Field of a measurement in the history: the id of the alert that it was.
        position_error: Fields of the errors of the position [deg]; none where the survey gives
            none.
        time: What the time is that of.
        param: Further numbers of the source.
    """

    source: str = ""
    earlier: str = ""
    position_error: tuple[str, ...] = ()
    time: str = ""
    param: tuple[ExtraParam, ...] = ()

    def numbers(self, view: AlertView) -> list[tuple[ExtraParam, float]]:
        """Return the further numbers that *view* has."""
        found = [(extra, _number(self._source(view).get(extra.name))) for extra in self.param]
        return [(extra, value) for extra, value in found if value is not None]

    def error(self, view: AlertView) -> float:
        """Return the radius of the position's error [deg]; 0 where the survey gives none."""
        errors = [_number(self._source(view).get(name)) for name in self.position_error]
        return math.hypot(*(error for error in errors if error is not None))

    def earlier_ids(self, view: AlertView) -> list[object]:
        """Return the ids of the object's earlier alerts, the newest `MOST_EARLIER`, by time."""
        ids = (point.get(self.earlier) for point in view.history) if self.earlier else ()
        known = dict.fromkeys(one for one in ids if one and one != view.id)
        return list(known)[-MOST_EARLIER:]

    def _source(self, view: AlertView) -> Mapping[str, Any]:
        return view.get(self.source) or {}


@cache
def survey_template(survey: str) -> SurveyTemplate:
    """Return the template of *survey*; one without further numbers where it has no table."""
    file = FOLDER / f"{survey}.toml"
    if not file.is_file():
        return SurveyTemplate()
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    extras = tuple(ExtraParam(**row) for row in content.pop("param", []))
    return SurveyTemplate(**{**content, "position_error": tuple(content["position_error"])}, param=extras)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
