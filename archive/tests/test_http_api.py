"""The archive over HTTP: pages and limits, cone search as the Virtual Observatory asks it."""

import io
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from astropy.io import fits
from astropy.io.votable import parse, parse_single_table
from click.testing import CliRunner
from prometheus_client import CollectorRegistry, Counter

from archive.tests.conftest import CODEC, Known, alert, packet, put, writer
from nightwire.archive import Archive, http_api
from nightwire.archive.commands import archive
from nightwire.archive.http_api import application
from nightwire.archive.querying.survey_tables import SurveyTables
from nightwire.archive.storage import Packet, packets_in
from nightwire.core.runtime import free_port
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.serving import KafkaAccess, plain_server
from nightwire.schemas.wire import SYNC_SIZE, container_block, container_head, frame, read_container
from tests._serving import running
from tests._waiting import until

SYNC = bytes(SYNC_SIZE)


@contextmanager
def answering(archive: Archive, access: KafkaAccess) -> Iterator[httpx.Client]:
    """Yield a client of a server of *archive*."""
    counter = Counter("requests", "Requests.", ["path", "status"], registry=CollectorRegistry())
    server = plain_server(application(archive, access, counter), "127.0.0.1", free_port())
    with running(server) as at, httpx.Client(base_url=f"http://{at}", timeout=30) as client:
        yield client


@pytest.fixture(scope="module")
def http(archived: Archive) -> Iterator[httpx.Client]:
    with answering(archived, KafkaAccess({})) as client:
        yield client


def test_what_is_asked_for_is_answered(http: httpx.Client) -> None:
    assert http.get("/surveys").json() == ["sim"]
    assert http.get("/sim/alerts/42").json()[0]["object_id"] == "1000014"
    assert [row["id"] for row in http.get("/sim/objects/1000014").json()] == ["42", "43", "44"]
    assert len(http.get("/sim/objects/1000014/light_curve").json()) == 3
    near = http.get("/sim/cone", params={"ra": 11, "dec": -20.25, "radius": 0.05}).json()
    assert near[0]["distance"] <= near[-1]["distance"] <= 0.05
    assert http.post("/query", json={"sql": "SELECT count(*) AS n FROM sim"}).json() == [{"n": 298}]
    (whole,) = read_container(http.get("/sim/alerts/42", params={"as": "avro"}).content)
    assert whole.record["diaSourceId"] == 42


def test_pages_join_to_the_whole(http: httpx.Client) -> None:
    found: list[str] = []
    url = '/query?sql=SELECT id FROM sim ORDER BY "offset"&limit=77'
    while url:
        answer = http.get(url)
        found += [row["id"] for row in answer.json()]
        link = re.fullmatch(r'<(.+)>; rel="next"', answer.headers.get("Link", ""))
        url = link[1] if link else ""
    assert found == [str(n + 1) for n in range(299) if n != 100]


def test_cone_search_is_as_the_virtual_observatory_wants_it(http: httpx.Client) -> None:
    answer = http.get("/sim/scs", params={"RA": "11", "DEC": "-20.25", "SR": "0.05", "VERB": "1"})
    table = parse_single_table(io.BytesIO(answer.content))
    assert {"ID_MAIN", "POS_EQ_RA_MAIN", "POS_EQ_DEC_MAIN"} <= {field.ucd for field in table.fields}
    assert len(table.array) == 10
    assert len(parse_single_table(io.BytesIO(http.get("/sim/scs?RA=11&DEC=-20.25&SR=0").content)).array) == 0
    for wrong in ("RA=11&DEC=-20.25", "RA=x&DEC=0&SR=1", "RA=1&DEC=99&SR=1"):
        document = parse(io.BytesIO(http.get(f"/sim/scs?{wrong}").content))
        assert [info.name for info in document.infos] == ["Error"]


def test_whole_records_are_had_by_offset(http: httpx.Client) -> None:
    answer = http.get("/sim/records/0", params={"from": 40, "until": 60, "limit": 5})
    rows = pa.ipc.open_stream(answer.content).read_all()
    assert [*packets_in("alerts.sim", rows)] == [packet(n) for n in range(40, 45)]
    since = packet(77).timestamp
    assert http.get("/sim/records/0/first", params={"since": since}).json() == {"offset": 77}
    assert http.get("/sim/records/3/first", params={"since": since}).json() == {"offset": None}


def test_whole_records_are_bounded_in_bytes_and_over_requests(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page ends where it is long enough, and says where to go on; four are made at once."""
    page, let_in, now, most, came = (
        SurveyTables.page,
        http_api._check_access,
        *(list[int]() for _ in range(3)),
    )

    async def counted(*given: Any) -> None:
        await let_in(*given)
        came.append(1)

    def held(*given: Any) -> Any:
        now.append(1)
        most.append(len(now))
        until(lambda: len(came) == 19 and len(most) >= 4, "all others ask, and four are let in")
        now.pop()
        return page(*given)

    monkeypatch.setattr(http_api, "PAGE_BYTES", 1)
    monkeypatch.setattr(http_api, "_check_access", counted)
    monkeypatch.setattr(SurveyTables, "page", held)

    def ask(begin: int) -> list[int]:
        answer = http.get("/sim/records/0", params={"from": begin, "until": 300})
        rows = pa.ipc.open_stream(answer.content).read_all()
        assert answer.headers["Next-Offset"] == str(min(300, begin + 16))
        return rows.column("offset").to_pylist()  # type: ignore[no-any-return]

    with ThreadPoolExecutor(19) as pool:
        assert [*chain(*pool.map(ask, range(0, 300, 16)))] == [*range(300)]
    assert max(most) == 4


def test_whole_alerts_are_sent_one_by_one(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next is read when the one before is on its way: of a long answer few are in memory."""
    read, came = SurveyTables.read_packets, Event()

    def held(tables: SurveyTables, number: int, begin: int, end: int) -> Iterator[Packet]:
        if begin == 43:
            assert came.wait(20)
        return read(tables, number, begin, end)

    monkeypatch.setattr(SurveyTables, "read_packets", held)
    found = b""
    with http.stream("GET", "/sim/objects/1000014", params={"as": "avro"}) as answer:
        for part in answer.iter_raw():
            found += part
            came.set()
    assert [one.record["diaSourceId"] for one in read_container(found)] == [42, 43, 44]


@pytest.mark.parametrize("framed", [True, False])
def test_alerts_of_several_schemas_are_in_several_containers(tmp_path: Path, framed: bool) -> None:
    later = Codec(sim_alert_schema() | {"doc": "later"})
    values = [CODEC.encode(alert(3)), later.encode(alert(4)), CODEC.encode(alert(5))]
    heads = [frame(SIM_ALERT_ID, b""), frame(9, b""), frame(SIM_ALERT_ID, b"")]
    if not framed:
        texts = [json.dumps(codec.schema).encode() for codec in (CODEC, later, CODEC)]
        heads = [container_head(text, SYNC) for text in texts]
        values = [container_block(value, SYNC) for value in values]
    joined = [head + value for head, value in zip(heads, values, strict=True)]
    put(writer(tmp_path, Known(_9=later)), *(packet(n, value) for n, value in enumerate(joined)))
    with answering(Archive(tmp_path), KafkaAccess({})) as http:
        answer = http.get("/sim/objects/1000001", params={"as": "avro"})
        assert (answer.status_code, "2 schemas" in answer.text) == (409, True), answer.text
    words = ["object", "1000001", "--archive", str(tmp_path), "--as", "avro"]
    shown = CliRunner().invoke(archive, words)
    assert (shown.exit_code, "several schemas" in shown.output) == (2, True)
    assert CliRunner().invoke(archive, [*words, "--out", str(tmp_path / "o.avro")]).exit_code == 0
    files = [(tmp_path / name).read_bytes() for name in ("o.avro", "o-2.avro")]
    found = [[one.record["diaSourceId"] for one in read_container(file)] for file in files]
    assert found == [[3, 5], [4]]


def test_a_stamp_is_had_by_the_id_of_its_alert(tmp_path: Path) -> None:
    file = io.BytesIO()
    fits.PrimaryHDU(np.ones((30, 30), np.float32)).writeto(file)
    tables = writer(tmp_path)
    with_stamp = frame(SIM_ALERT_ID, CODEC.encode(alert(1) | {"cutoutScience": file.getvalue()}))
    put(tables, packet(0, with_stamp), packet(1))
    with answering(Archive(tmp_path), KafkaAccess({})) as http:
        found = http.get("/sim/alerts/1/stamps/science.fits")
        assert (found.status_code, found.headers["content-type"]) == (200, "image/fits")
        assert found.content == file.getvalue()
        assert http.get("/sim/alerts/1/stamps/science.png").content.startswith(b"\x89PNG")
        for path, status, why in (
            ("1/stamps/template.fits", 404, "no stamp template; it has: science"),
            ("1/stamps/science.gif", 404, "NAME.fits or NAME.png"),
            ("99/stamps/science.fits", 404, "no alert of 99 is archived"),
            ("2/stamps/science.fits", 422, "not FITS"),
        ):
            refused = http.get(f"/sim/alerts/{path}")
            assert refused.status_code == status
            assert why in refused.text


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/sim/alerts/none", 404, "no alert of none"),
        ("/lsst/alerts/1", 400, "the archive: no alerts of 'lsst'; there are: sim"),
        ("/sim/cone?ra=1&dec=2", 400, "radius"),
        ("/sim/cone?ra=1&dec=95&radius=1", 400, "dec is 95"),
        ("/sim/alerts/42?as=xml", 400, "as=xml"),
        ("/sim/alerts/42?limit=x", 400, "limit=x"),
        ("/sim/alerts/42?columns=nothing", 400, "nothing"),
        ("/sim/alerts/42?columns=distance", 400, "distance"),
        ("/sim/alerts/42?columns=p", 400, "p"),
        ("/query?sql=DELETE FROM sim", 400, "nothing is written"),
        ("/query?sql=SELECT FROM", 400, "LINE 1"),
        ("/query", 400, "SELECT"),
        ("/query?sql=SELECT repeat('x', 99999) FROM range(9999)&limit=9999", 400, "fewer rows"),
        ("/query?sql=SELECT * FROM range(9999) a, range(9999) b&start=99999999", 400, "fewer rows"),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(
    http: httpx.Client, path: str, status: int, why: str
) -> None:
    answer = http.get(path)
    assert (answer.status_code, why in answer.json()["message"]) == (status, True), answer.text


@pytest.mark.parametrize(
    ("bound", "value", "path", "why"),
    [
        ("MAX_CONE_ROWS", 200, "/sim/cone?ra=11&dec=0&radius=180", "ask for a smaller radius"),
        ("SQL_TIMEOUT", 0.5, "/query?sql=SELECT length(repeat('x', 3000000000))", "no answer within 0.5 s"),
    ],
)
def test_what_would_take_too_much_is_refused(
    http: httpx.Client, monkeypatch: pytest.MonkeyPatch, bound: str, value: float, path: str, why: str
) -> None:
    """The whole sky is not read into memory; what hears no interrupt is killed."""
    monkeypatch.setattr(f"nightwire.archive.http_api.{bound}", value)
    answer = http.get(path)
    assert (answer.status_code, why in answer.text) == (400, True), answer.text


def test_who_finds_others_asking_is_told_so(http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightwire.archive.http_api.SQL_TIMEOUT", 1.0)
    monkeypatch.setattr("nightwire.archive.querying.query_workers.QUEUE_TIMEOUT", 0.0)
    slow = "/query?sql=SELECT count(*) FROM range(1000000000) a, range(1000) b"
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: http.get(slow).status_code, range(3)))
    assert sorted(found) == [400, 400, 503]


def test_who_has_no_password_is_not_answered(archived: Archive, tmp_path: Path) -> None:
    with answering(archived, KafkaAccess({"sasl.username": "a", "sasl.password": "b"})) as guarded:
        assert guarded.get("/sim/alerts/42").status_code == 401
        assert guarded.get("/query?sql=SELECT 1").status_code == 401
        assert guarded.get("/sim/alerts/42", auth=("a", "b")).status_code == 200
    with answering(Archive(tmp_path), KafkaAccess({"sasl.username": "a", "sasl.password": "b"})) as empty:
        assert empty.get("/surveys").status_code == 401
