"""Skymaps of strangers: drawn where they can be, refused where not, fetched only where it is allowed."""

import gzip
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import httpx
import numpy as np
import pytest
from astropy import units
from PIL import Image

from nightwire.core.kafka import Writer, producer
from nightwire.portal.model.sky import mollweide
from nightwire.portal.skymaps import HostError, Skymaps, kept
from nightwire.portal.skymaps.drawing import INK, drawn
from nightwire.portal.skymaps.regions import SkymapError, regions, unpacked
from nightwire.schemas.serving import RefusedError
from portal.tests.sample import HOSTILE, Served, serving, voevent
from portal.tests.skymaps.maps import PLACE, blob, file_of, flat, multi_order

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
    "lying rows": (changed("NAXIS2  =                   12", "NAXIS2  =         999999999999"), "promises more"),
    "lying axes": (changed("NAXIS   =                    2", "NAXIS   =         999999999999"), "it "),
    "lying fields": (changed("TFIELDS =                    1", "TFIELDS =         999999999999"), "it "),
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
    if what.startswith("lying"):  # it may take any time and memory: as the portal does it
        with pytest.raises(SkymapError):
            drawn(packed)
        return
    with pytest.raises(SkymapError, match=why):
        regions(packed)
