"""Catalogues of objects, and maps of the sky, that alerts are matched with."""

from nightwire.core.catalogues.catalogue import Catalogue, Description
from nightwire.core.catalogues.files import CatalogueError, LeftOut, open_file
from nightwire.core.catalogues.sky_map import SkyMap
from nightwire.core.catalogues.store import CatalogueStore, Columns, catalogues_here, catalogues_of
from nightwire.core.catalogues.zone_index import Nearest, ZoneIndex, separations

__all__ = [
    "Catalogue",
    "CatalogueError",
    "CatalogueStore",
    "Columns",
    "Description",
    "LeftOut",
    "Nearest",
    "SkyMap",
    "ZoneIndex",
    "catalogues_here",
    "catalogues_of",
    "open_file",
    "separations",
]
