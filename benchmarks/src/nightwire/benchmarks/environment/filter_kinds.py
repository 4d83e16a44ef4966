"""Kinds of filters as astronomers write them: each passes alerts above (or below) one limit.

In every text ``LIMIT`` stands for a number, which decides how many alerts pass.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class FilterKind:
    """One kind of filter.

    Attributes:
        name: Its name, as a part of a filter's.
        source: Text of the filter; it passes an alert whose *value* is beyond LIMIT.
        value: Expression of ``alert`` that LIMIT is compared with, or None where the filter never passes it.
        above: Whether it passes values above LIMIT; else below.
        sql: Whether it is an SQL condition; else Python with a function ``keep``.
        compiles: Whether the closed language can say it.
    """

    name: str
    source: str
    value: str
    above: bool = True
    sql: bool = False
    compiles: bool = True


HISTORY = "[p.flux for p in alert.history if p.flux is not None]"

CUTS = (
    FilterKind(
        "bright",
        "def keep(alert):\n    return alert.magnitude is not None and alert.magnitude < LIMIT\n",
        "alert.magnitude",
        above=False,
    ),
    FilterKind(
        "sure",
        "def keep(alert):\n"
        "    if alert.snr is None or alert.galactic_latitude is None:\n"
        "        return False\n"
        "    return alert.snr > LIMIT and abs(alert.galactic_latitude) > 5\n",
        "alert.snr if alert.galactic_latitude is not None and abs(alert.galactic_latitude) > 5 else None",
    ),
    FilterKind(
        "north",
        'def keep(alert):\n    return alert["diaSource"]["dec"] > LIMIT\n',
        "alert.dec",
    ),
    FilterKind(
        "aperture",
        "def keep(alert):\n"
        '    source = alert["diaSource"]\n'
        '    return source["apFlux"] is not None and source["apFlux"] > LIMIT\n',
        'alert["diaSource"]["apFlux"]',
    ),
)

MAGNITUDES = """\
def newest(alert, band):
    found = [p.magnitude for p in alert.history if p.band == band and p.magnitude is not None]
    return found[-1] if len(found) > 0 else None


def keep(alert):
    one, other = newest(alert, "BLUE"), newest(alert, "RED")
    return one is not None and other is not None and one - other SIGN LIMIT
"""
COLOUR = """\
(lambda one, other: one[-1] - other[-1] if one and other else None)(
    [p.magnitude for p in alert.history if p.band == "BLUE" and p.magnitude is not None],
    [p.magnitude for p in alert.history if p.band == "RED" and p.magnitude is not None],
)"""


def colour(name: str, blue: str, red: str, *, above: bool) -> FilterKind:
    """Return the kind that compares the newest magnitudes in two bands."""
    source, value = (text.replace("BLUE", blue).replace("RED", red) for text in (MAGNITUDES, COLOUR))
    return FilterKind(name, source.replace("SIGN", ">" if above else "<"), value, above=above)


COLOURS = (colour("blue", "g", "r", above=False), colour("red", "r", "i", above=True))

CURVES = (
    FilterKind(
        "swing",
        f"def keep(alert):\n    fluxes = {HISTORY}\n"
        "    return len(fluxes) > 1 and max(fluxes) - min(fluxes) > LIMIT\n",
        "(lambda f: max(f) - min(f) if len(f) > 1 else None)"
        "([p.flux for p in alert.history if p.flux is not None])",
    ),
    FilterKind(
        "rise",
        "def mean(values):\n    return sum(values) / len(values)\n\n\n"
        f"def keep(alert):\n    fluxes = {HISTORY}\n"
        "    return len(fluxes) > 0 and alert.flux is not None and alert.flux - mean(fluxes) > LIMIT\n",
        "(lambda f: alert.flux - sum(f) / len(f) if f and alert.flux is not None else None)"
        "([p.flux for p in alert.history if p.flux is not None])",
    ),
    FilterKind(
        "rich",
        "def keep(alert):\n"
        "    return sum(1 for p in alert.history if p.snr is not None and p.snr > 5) > LIMIT\n",
        "sum(1 for p in alert.history if p.snr is not None and p.snr > 5)",
    ),
)

SQL = (
    FilterKind(
        "sql-bright",
        "magnitude < LIMIT AND snr > 5",
        "alert.magnitude if alert.snr is not None and alert.snr > 5 else None",
        above=False,
        sql=True,
    ),
    FilterKind(
        "sql-high",
        "ABS(galactic_latitude) > 20 AND flux > LIMIT",
        "alert.flux if alert.galactic_latitude is not None and abs(alert.galactic_latitude) > 20 else None",
        sql=True,
    ),
)

CODE = (
    FilterKind(
        "class",
        "class Scorer:\n"
        "    def __init__(self, weight):\n"
        "        self.weight = weight\n\n"
        "    def score(self, alert):\n"
        "        return self.weight * (alert.snr or 0.0)\n\n\n"
        "SCORER = Scorer(2.0)\n\n\n"
        "def keep(alert):\n    return SCORER.score(alert) > LIMIT\n",
        "2.0 * (alert.snr or 0.0)",
        compiles=False,
    ),
    FilterKind(
        "try",
        "def keep(alert):\n"
        "    try:\n"
        "        return alert.flux / alert.flux_error > LIMIT\n"
        "    except (TypeError, ZeroDivisionError):\n"
        "        return False\n",
        "alert.flux / alert.flux_error if alert.flux is not None and alert.flux_error else None",
        compiles=False,
    ),
    FilterKind(
        "astropy",
        "from astropy.coordinates import angular_separation\n\n\n"
        "def keep(alert):\n"
        "    if alert.ra is None or alert.dec is None:\n"
        "        return False\n"
        "    ra, dec, pole = alert.ra * 0.017453292519943295, alert.dec * 0.017453292519943295, 0.3\n"
        "    return angular_separation(ra, dec, 1.0, pole) < LIMIT\n",
        "SEPARATION(alert)",
        above=False,
        compiles=False,
    ),
)

COMPILED = (*CUTS, *COLOURS, *CURVES, *SQL)

DISTURBERS = (
    FilterKind(
        "loop",
        "class Never:\n    pass\n\n\n"
        "def keep(alert):\n"
        "    while alert.visit >= LIMIT:\n        pass\n"
        "    return False\n",
        "None",
        compiles=False,
    ),
    FilterKind(
        "grow",
        "HOARD = []\n\n\n"
        "def keep(alert):\n"
        "    if alert.visit >= LIMIT:\n"
        "        while True:\n"
        "            HOARD.append(bytearray(10_000_000))\n"
        "    return False\n",
        "None",
        compiles=False,
    ),
)
"""Filters that behave until visit LIMIT; then one loops for ever, and one takes all the memory it gets."""
