"""Alerts, catalogues, and filters that match them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from astropy import units as u
from astropy.coordinates import Latitude, Longitude
from mocpy import MOC

from nightwire.core.catalogues import CatalogueStore
from nightwire.filters.admission.catalogue_names import with_versions
from nightwire.filters.model.compilation import Compilation, compile_request

GAIA = "ra,dec,name,g\n10,20,x,18.5\n10.0001,20,y,\n350,-5.5,w,21\n"
TARGETS = "ra,dec,label\n50,0,mine\n"

POSITIONS = [(10.0, 20.0), (350.0, -5.5), (50.0, 0.0), (None, 1.0)]
"""Of the alerts: near two stars, near one, near a target alone, nowhere. [deg]"""


def stocked(folder: Path) -> CatalogueStore:
    """Return a store with the catalogues ``gaia`` and ``me/targets``, and the map ``area``."""
    store = CatalogueStore(folder / "catalogues")
    for name, text in (("gaia", GAIA), ("me/targets", TARGETS)):
        (folder / "objects.csv").write_text(text)
        store.add(name, folder / "objects.csv")
    cone = {"lon": Longitude(10 * u.deg), "lat": Latitude(20 * u.deg), "radius": 5 * u.deg}
    MOC.from_cone(**cone, max_depth=8).save(str(folder / "area.fits"), format="fits")
    store.add("area", folder / "area.fits")
    return store


def alerts() -> pa.RecordBatch:
    """Return the alerts at `POSITIONS`."""
    ra, dec = (pa.array(part, pa.float64()) for part in zip(*POSITIONS, strict=True))
    return pa.RecordBatch.from_pydict(
        {"diaSource.diaSourceId": [1, 2, 3, 4], "diaSource.ra": ra, "diaSource.dec": dec}
    )


def compiled(source: str, store: CatalogueStore, language: str = "python", **named: Any) -> Compilation:
    """Return a filter as the engine accepts it of its owner, ``me``."""
    entry = "keep" if language == "python" else ""
    request = {"language": language, "source": source, "entry": entry, "survey": "sim", "transform": ""}
    return with_versions(compile_request({**request, **named}), "me", store)
