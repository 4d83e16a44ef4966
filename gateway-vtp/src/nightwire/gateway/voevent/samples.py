"""Sample VOEvents, made up but valid: for demonstrations, and to try a telescope's software with.

The same number of the same run is the same bytes, always.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_SEED = 20260101
_STREAM = "ivo://nightwire.example/samples"
_KINDS = (
    ("burst", "GRB", "em.gamma", "count/s", (50.0, 4000.0)),
    ("supernova", "SN Ia", "phot.mag;em.opt.R", "mag", (14.0, 21.0)),
    ("flare", "stellar flare", "phot.mag;em.opt.U", "mag", (8.0, 16.0)),
    ("radio", "FRB", "phot.flux.density;em.radio", "Jy", (0.1, 30.0)),
    ("neutrino", "astrophysical neutrino", "phys.energy", "TeV", (60.0, 9000.0)),
)
_SYSTEMS = ("UTC-ICRS-GEO", "UTC-FK5-GEO", "UTC-ICRS-TOPO", "TT-ICRS-TOPO")


@dataclass(frozen=True)
class _Sky:
    ra: float
    dec: float
    error: float
    system: str


def samples(count: int, first: int = 0, run: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield *count* packets from number *first* on: a name and the document.

    They are VOEvent 2.0, of all roles, some citing earlier ones.  *run* begins the local part of
    their IVORNs: those of another run are other events.
    """
    for number in range(first, first + count):
        yield f"sample-{number:05d}", _packet(number, run)


def write_samples(directory: Path, count: int) -> list[Path]:
    """Write *count* packets to *directory*, one file each; return the files in order."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, document in samples(count):
        file = directory / f"{name}.xml"
        file.write_bytes(document)
        files.append(file)
    return files


def _packet(number: int, run: str) -> bytes:
    choice = random.Random(_SEED + number)  # noqa: S311  (made-up sky, not a secret)
    kind, concept, ucd, unit, (low, high) = choice.choice(_KINDS)
    role = choice.choices(("observation", "prediction", "utility", "test"), (85, 5, 5, 5))[0]
    date = _FIRST + timedelta(seconds=number * 37 + choice.random())
    ivorn = f"{_STREAM}/{kind}#{run}{number:05d}"
    sky = _Sky(
        choice.uniform(0, 360), choice.uniform(-90, 90), choice.uniform(0.0003, 3), choice.choice(_SYSTEMS)
    )
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<voe:VOEvent xmlns:voe="http://www.ivoa.net/xml/VOEvent/v2.0"'
        f' ivorn={quoteattr(ivorn)} role="{role}" version="2.0">\n',
        _who(date, choice.random() < 0.5),
        _what(choice, kind, ucd, unit, choice.uniform(low, high)),
        _where_when(sky, date) if role in ("observation", "prediction") else "",
        _why(concept, choice.random(), choice.random()),
        _citations(choice, number, run) if number and choice.random() < 0.2 else "",
        "</voe:VOEvent>\n",
    ]
    return "".join(parts).encode()


def _who(date: datetime, named: bool) -> str:
    author = "<Author><shortName>Samples</shortName><title>Made-up events</title></Author>" if named else ""
    stamp = date.strftime("%Y-%m-%dT%H:%M:%S")
    return f"  <Who><AuthorIVORN>{_STREAM}</AuthorIVORN><Date>{stamp}</Date>{author}</Who>\n"


def _what(choice: random.Random, kind: str, ucd: str, unit: str, value: float) -> str:
    extra = "".join(
        f'      <Param name="channel_{i}" value="{choice.gauss(0, 1):.4f}" dataType="float"/>\n'
        for i in range(choice.randrange(12))
    )
    return (
        f'  <What>\n    <Param name="kind" value="{kind}"/>\n'
        f'    <Group name="detection">\n'
        f'      <Param name="strength" value="{value:.3f}" unit="{unit}" ucd="{ucd}" dataType="float"/>\n'
        f'      <Param name="significance" value="{choice.uniform(5, 40):.2f}" ucd="stat.snr"/>\n'
        f"{extra}    </Group>\n  </What>\n"
    )


def _where_when(sky: _Sky, date: datetime) -> str:
    when = date.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return (
        '  <WhereWhen><ObsDataLocation><ObservatoryLocation id="Example Observatory"/>\n'
        f'    <ObservationLocation><AstroCoordSystem id="{sky.system}"/>'
        f'<AstroCoords coord_system_id="{sky.system}">\n'
        f'      <Time unit="s"><TimeInstant><ISOTime>{when}</ISOTime></TimeInstant></Time>\n'
        '      <Position2D unit="deg"><Name1>RA</Name1><Name2>Dec</Name2>'
        f"<Value2><C1>{sky.ra:.5f}</C1><C2>{sky.dec:.5f}</C2></Value2>"
        f"<Error2Radius>{sky.error:.5f}</Error2Radius></Position2D>\n"
        "    </AstroCoords></ObservationLocation></ObsDataLocation></WhereWhen>\n"
    )


def _why(concept: str, importance: float, probability: float) -> str:
    return (
        f'  <Why importance="{importance:.2f}"><Inference probability="{probability:.2f}">'
        f"<Concept>{escape(concept)}</Concept></Inference></Why>\n"
    )


def _citations(choice: random.Random, number: int, run: str) -> str:
    cited = choice.randrange(number)
    kind = random.Random(_SEED + cited).choice(_KINDS)[0]  # noqa: S311
    cite = choice.choice(("followup", "supersedes", "retraction"))
    ivorn = f"{_STREAM}/{kind}#{run}{cited:05d}"
    return f'  <Citations><EventIVORN cite="{cite}">{ivorn}</EventIVORN></Citations>\n'
