"""Skymaps of strangers: drawn where they can be, else refused; fetched where it is allowed."""

import gzip
import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from threading import Event

import httpx
import numpy as np
import pytest
from astropy import units
from PIL import Image

from nightwire.core.kafka import Writer, producer
from nightwire.portal.model.mollweide import mollweide
from nightwire.portal.skymaps import HostError, SkymapCache, cache
from nightwire.portal.skymaps.drawing import INK, DrawnSkymap, draw, png_of
from nightwire.portal.skymaps.regions import SkymapError, regions
from nightwire.schemas.serving import KafkaAccess, RefusedError
from portal.tests.sample import HOSTILE, serving, voevent
from portal.tests.skymaps.maps import PLACE, file_of, flat, multi_order
from tests._serving import answering

GOOD = file_of({"PROB": np.ones(12)})


def changed(old: str, new: str) -> bytes:
    """Return a good file whose header says something else."""
    assert old.encode() in GOOD
    return GOOD.replace(old.encode(), new.ljust(len(old)).encode())


def probabilities(*values: float, **cards: object) -> bytes:
    return file_of({"PROB": np.array([1.0] * (12 - len(values)) + list(values))}, **cards)


def cells(*uniq: int) -> bytes:
    return file_of({"UNIQ": np.array(uniq), "PROBDENSITY": np.ones(len(uniq))})


HOSTILE_FILES = {
    "nothing": (b"", "no FITS file"),
    "a page": (f"<html>{HOSTILE}</html>".encode(), "no FITS file"),
    "cut": (GOOD[:3000], "it "),
    "cut gzip": (gzip.compress(GOOD)[:-9], "no whole gzip"),
    "no gzip": (b"\x1f\x8b" + bytes(99), "no whole gzip"),
    "bomb": (gzip.compress(bytes(129 << 20), 1), "more than 128 MiB"),
    "header without end": (GOOD[:80].ljust(20 << 20), "it "),
    "a picture": (changed("'HEALPIX ", "'PICTURE "), "no table of HEALPix cells"),
    "lying rows": (
        changed("NAXIS2  =                   12", "NAXIS2  =         999999999999"),
        "promises more",
    ),
    "lying axes": (
        changed("NAXIS   =                    2", "NAXIS   =         999999999999"),
        "axes or columns",
    ),
    "lying fields": (
        changed("TFIELDS =                    1", "TFIELDS =         999999999999"),
        "axes or columns",
    ),
    "lying format": (changed("TFORM1  = 'D       '", "TFORM1  = '999999D '"), "it "),
    "text": (changed("TFORM1  = 'D       '", "TFORM1  = '8A      '"), "holds no numbers"),
    "NaN": (probabilities(np.nan), "NaN"),
    "infinite": (probabilities(np.inf), "NaN"),
    "negative": (probabilities(-1.0), "negative"),
    "zero": (probabilities(*[0.0] * 12), "zero everywhere"),
    "thirteen cells": (probabilities(*[1.0] * 13), "no whole map"),
    "galactic": (probabilities(COORDSYS="G"), "not equatorial"),
    "no probability": (file_of({"FLUX": np.ones(12)}), "no column PROBDENSITY"),
    "no cells": (cells(), "not on the sky"),
    "below the sky": (cells(3, 4), "not on the sky"),
    "beyond the sky": (cells(4, (16 << 58)), "not on the sky"),
    "a cell twice": (cells(4, 5, 4), "a cell twice"),
}


@pytest.mark.parametrize("what", HOSTILE_FILES)
def test_a_file_that_is_no_skymap_is_refused_by_name(what: str) -> None:
    packed, why = HOSTILE_FILES[what]
    with pytest.raises(SkymapError, match=why):
        regions(packed)


@pytest.mark.parametrize("packed", [flat(), flat(nested=True), flat(8), multi_order()])
def test_half_and_nine_tenths_of_a_blob_lie_within_what_a_gauss_curve_says(packed: bytes) -> None:
    found = regions(packed)
    assert found.areas == pytest.approx((108.9, 361.7), rel=0.01)  # 2 π σ² ln 2, 2 π σ² ln 10
    assert found.peak == pytest.approx(PLACE, abs=1.0)
    at = np.array([0.0, 5.5, 6.5, 10.0, 11.5])  # σ √(2 ln 2) = 5.9, σ √(2 ln 10) = 10.7
    there = [
        one.contains_lonlat(np.full(5, PLACE[0]) * units.deg, (PLACE[1] + at) * units.deg)
        for one in found.maps
    ]
    assert [one.tolist() for one in there] == [[True] * 2 + [False] * 3, [True] * 4 + [False]]


def test_a_map_is_drawn_where_the_page_has_that_place() -> None:
    """Through the process that draws for the portal."""
    found = draw(multi_order())
    pixels = np.asarray(Image.open(io.BytesIO(found.png)))
    assert opacity(pixels, *PLACE) > opacity(pixels, PLACE[0], PLACE[1] + 8) > 0
    assert opacity(pixels, PLACE[0] + 20, PLACE[1]) == opacity(pixels, -30, 30) == 0
    assert tuple(pixels[0, 0]) == (*INK, 0)


def opacity(pixels: np.ndarray, ra: float, dec: float) -> int:  # type: ignore[type-arg]
    ((x, y),) = mollweide(np.array([ra]), np.array([dec]))
    height, width = pixels.shape[:2]
    return int(pixels[int((1 - y) * height / 2), int((x + 2) * width / 4), 3])


def test_a_region_too_small_to_be_seen_has_a_ring() -> None:
    small = regions(cells(4 * 4**10 + 7))
    assert (np.asarray(Image.open(io.BytesIO(png_of(small))))[..., 3] > 0).sum() > 100
    assert DrawnSkymap(b"", small.areas, small.peak).summary.startswith("50% within 0.0 deg², 90%")


@dataclass
class Host:
    """Serves files on this machine.

    Attributes:
        url: Where.
        files: What is answered at a path: a status and a body, or what makes it wait.
        asked: Paths that were asked for.
    """

    url: str
    files: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gate: Event = field(default_factory=Event)

    @property
    def name(self) -> str:
        """Its HOST:PORT."""
        return self.url.removeprefix("http://")


@contextmanager
def hosting() -> Iterator[Host]:
    """Serve files within the block; those of ``/slow`` once its gate is open."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.asked.append(self.path)
            if self.path == "/slow":
                host.gate.wait(60)
            status, body = host.files.get(self.path, (404, b"no such file"))
            self.send_response(status)
            self.send_header("Location", f"{host.url}/good")
            self.end_headers()
            self.wfile.write(body)

    with answering(Handler) as url:
        host = Host(url)
        try:
            yield host
        finally:
            host.gate.set()


def said(skymaps: SkymapCache, url: str) -> tuple[int, str]:
    """Return status and text of an answer, once the skymap is fetched or refused."""
    deadline = time.monotonic() + 90
    while True:
        try:
            return 200, skymaps.get(url).summary
        except RefusedError as error:
            if str(error) != cache.FETCHING or time.monotonic() > deadline:
                return error.status, str(error)
        time.sleep(0.02)  # polling a condition


def test_what_a_host_answers_is_drawn_or_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_FILE", 1 << 20)
    with hosting() as host:
        skymaps = SkymapCache([host.name])
        host.files |= {"/page": (200, b"<html>"), "/moved": (302, b""), "/large": (200, bytes(2 << 20))}
        host.files |= {"/away": (503, HOSTILE.encode())}
        for path, status, why in (
            ("/page", 422, "it is no FITS file"),
            ("/moved", 422, "redirects are not followed"),
            ("/large", 422, "more than 1,048,576 bytes"),
            ("/lost", 422, "answers 404"),
            ("/away", 503, "cannot be had now: answers 503"),
        ):
            code, text = said(skymaps, host.url + path)
            assert (code, why in text) == (status, True), text
        assert host.asked == ["/page", "/moved", "/large", "/lost", "/away"]
        assert said(skymaps, f"{host.url}/away")[0] == 503
        assert len(host.asked) == 5  # what is away is not asked again at once
        again = {
            one.removeprefix(host.url): np.isfinite(skymaps._cached[one].until) for one in skymaps._cached
        }
        assert again == dict.fromkeys(host.asked, True) | {"/page": False}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{other}/", "http://127.0.0.1/", "https://127.0.0.1:{other}/",
        "http://localhost:{port}/", "http://example.org/", "file:///etc/passwd",
        "ftp://127.0.0.1:{port}/", "env:NIGHTWIRE_FLOW_X", "", "//",
        "http://127.0.0.1:{port}@10.0.0.1/", "http://[::ffff:127.0.0.1]:{port}/",
        "http://127.0.0.1:{port}/" + "x" * 2000,
    ],
)  # fmt: skip
def test_only_hosts_that_the_operator_named_are_asked(url: str) -> None:
    with hosting() as host:
        port = int(host.name.rpartition(":")[2])
        with pytest.raises(RefusedError, match="its skymap") as caught:
            SkymapCache([host.name]).get(url.format(port=port, other=port % 60_000 + 1))
        assert (caught.value.status, host.asked) == (404, [])


def test_a_name_that_leads_inside_is_refused_though_it_is_allowed() -> None:
    with hosting() as host:
        name = host.name.replace("127.0.0.1", "localhost")
        status, why = said(SkymapCache([name]), f"http://{name}/")
        assert (status, "an address inside" in why, host.asked) == (422, True, [])


@pytest.mark.parametrize(
    "text", ["", "http://a.example", "a.example/x", "a b", "u:p@a.example", "a:99999999"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="is no HOST"):
        SkymapCache([text])


def test_skymaps_are_fetched_one_at_a_time_and_not_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_QUEUED", 2)
    with hosting() as host:
        skymaps = SkymapCache([host.name])
        for path, why in (
            ("/slow", "being fetched"),
            ("/b", "being fetched"),
            ("/c", "many others"),
            ("/b", "being"),
        ):
            with pytest.raises(RefusedError, match=why) as caught:
                skymaps.get(host.url + path)
            assert caught.value.status == 503
        host.gate.set()
        assert "answers 404" in said(skymaps, f"{host.url}/b")[1]
        assert host.asked == ["/slow", "/b"]


def gravitational_wave(number: int, url: str) -> bytes:
    """Return a VOEvent without a position that names a skymap."""
    param = {"name": "skymap_fits", "value": url, "unit": None, "ucd": None, "group": "GW_SKYMAP"}
    return voevent(f"ivo://gwnet/LVC#S{number}-1", params=[param], ra=None, dec=None)


def test_a_skymap_is_on_the_pages_once_it_is_there_for_who_may_read_the_event(bootstrap: str) -> None:
    with hosting() as host, serving(bootstrap, skymaps=SkymapCache([host.name])) as one:
        host.files["/slow"] = 200, multi_order()
        writer = Writer(producer(bootstrap))
        for number, url in enumerate(
            (f"{host.url}/slow", "https://elsewhere.example/sky.fits", f"{host.url}/no")
        ):
            writer.write("voevents", gravitational_wave(number, url), partition=0)
        writer.flush()
        one.until(lambda: len(one.portal.recent.posts()) == 3, "the events are read")
        with httpx.Client(base_url=one.url, timeout=60) as http:
            pages = [
                http.get(f"/object/voevent/ivo%3A%2F%2Fgwnet%2FLVC%23S{number}-1").text for number in range(3)
            ]
            assert cache.FETCHING in pages[0]
            assert "--skymaps-from elsewhere.example" in pages[1]
            at = "/api/skymaps/voevents/0/{}"
            assert f'data-skymap="{at.format(0)}"' in pages[0]
            assert [http.get(at.format(number)).status_code for number in range(2)] == [503, 404]
            host.gate.set()
            one.until(lambda: http.get(at.format(0)).status_code == 200, "it is drawn")
            one.until(lambda: http.get(at.format(2)).status_code == 422, "it is refused")
            found = http.get(at.format(0)).json()
            assert (round(found["area90"]), found["says"]) == (
                362,
                "50% within 109 deg², 90% within 362 deg²",
            )
            assert http.get(at.format(0), params={"format": "png"}).content.startswith(b"\x89PNG")
            page, night = (
                http.get("/object/voevent/ivo%3A%2F%2Fgwnet%2FLVC%23S0-1").text,
                http.get("/night").text,
            )
            for text in (page, night):
                assert f'href="{at.format(0)}?format=png"' in text
                assert found["says"] in text
            assert night.count('class="sky small"') == 1
            assert "answers 404" in http.get("/object/voevent/ivo%3A%2F%2Fgwnet%2FLVC%23S2-1").text
    with serving(bootstrap, access=KafkaAccess({"sasl.username": "ann"})) as closed:
        assert httpx.get(f"{closed.url}{at.format(0)}").status_code == 401
