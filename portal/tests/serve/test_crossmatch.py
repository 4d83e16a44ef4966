"""What catalogues have where an object is."""

from pathlib import Path

import httpx
from mocpy import MOC

from nightwire.core.catalogues import CatalogueStore
from portal.tests.sample import HOSTILE, Served, serving


def test_an_object_is_matched_with_shared_catalogues(bootstrap: str, served: Served, tmp_path: Path) -> None:
    store = CatalogueStore(tmp_path / "catalogues")
    stars = f'ra,dec,name,mag\n10.5215,-20.25,"{HOSTILE.replace(chr(34), "")}",17.5\n10.5211,-20.25,far,21\n'
    (tmp_path / "stars.csv").write_text(stars)
    MOC.from_string("0/0-11").save(str(tmp_path / "sky.fits"), "fits")
    store.add("stars", tmp_path / "stars.csv")
    store.add("all", tmp_path / "sky.fits")
    store.add("ann/own", tmp_path / "stars.csv")
    store.add("broken", tmp_path / "stars.csv")
    (tmp_path / "catalogues" / "shared" / "broken" / str(store.current("broken")) / "dec").write_bytes(b"")
    with serving(bootstrap, catalogues=store) as one:
        one.until(lambda: one.portal.recent.any_named("1001", ["alerts.sim"]), "the night is read")
        found = httpx.get(f"{one.url}/api/object/sim/1001").json()["matches"]
        assert [each["catalogue"] for each in found] == ["stars", "all", "broken"]
        assert (found[0]["columns"]["name"], found[0]["count"]) == ("far", 2)
        assert round(found[0]["separation"], 2) == 0.34
        assert "cannot be opened" in found[2]["trouble"]
        page = httpx.get(f"{one.url}/object/sim/1001").text
        assert "within this map" in page
        assert "mag: 21" in page
        assert "own" not in page[page.index("h-matches") : page.index("h-alerts")]
