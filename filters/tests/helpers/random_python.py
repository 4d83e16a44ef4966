"""Random filters in Python: whole functions, of everything that the closed language has."""

import random
from collections.abc import Callable
from typing import Any

NUMBERS = (
    *("a.flux", "a.magnitude", "a.snr", "a.ra", "a.dec", "a.mjd_tai", "a.flux_error", "a.galactic_latitude"),
    *("a.galactic_longitude", 'a["diaSource"]["psfFlux"]', 'a["diaSource"].get("reliability")'),
    *('a["diaSource"]["trailLength"]', 'a["diaObject"]["g_psfFluxMean"]'),
    '(a.get("diaObject") or {}).get("g_psfFluxMean", 1.5)',
    'a.colour("g", "r")',
)
WHOLE = (
    *("a.visit", "a.healpix", 'a["diaSource"]["psfNdata"]', 'a["diaSource"]["parentDiaSourceId"]', "a.id"),
    *(
        "a.healpix_at(5)",
        'len(a.magnitudes("r"))',
        "len(a.history)",
        'len(a["prvDiaSources"] or [])',
        'a["diaObject"]["nDiaSources"]',
        "a.object_id",
    ),
)
TEXTS = ("a.band", 'a["diaSource"]["reason"]', '"r"', '"main"')
TRUTHS = (
    *('a["diaSource"]["isDipole"]', "a.flux is None", "a.flux is not None", 'a["diaObject"] is None'),
    *("a.solar_system_id is None", 'a.get("nothing") is None', 'a["diaSource"].get("isDipole", False)'),
    *("a.history", "not a.history", 'a["prvDiaForcedSources"] is not None', "DEEP"),
)
POINT_NUMBERS = (
    "p.flux",
    "p.magnitude",
    "p.snr",
    "p.mjd_tai",
    "p.flux_error",
    "p.flux or 0.0",
    "p.flux or 1",
)
OWN_NUMBERS = ('s["psfFlux"]', 's["psfFluxErr"]', 's["midpointMjdTai"]', '(s["psfFlux"] or 0.0)')
"""The survey's own values of an earlier point, NaN and infinite ones among them."""

OWN_POINTS = (
    'a["prvDiaSources"] or []',
    'a["prvDiaSources"]',
    'a["prvDiaForcedSources"] or []',
    '(a.get("prvDiaForcedSources") or [])[-5:]',
)
CURVE = ("flux", "flux_error", "mjd_tai")

MATH_ANY: tuple[str, ...] = (
    "fabs",
    "floor",
    "ceil",
    "trunc",
    "isnan",
    "isinf",
    "isfinite",
    "degrees",
    "radians",
    "cbrt",
    "asinh",
)
MATH_ANY += ("sin", "cos", "tan", "atan", "tanh")
MATH_POSITIVE = ("sqrt", "log", "log10", "log2", "log1p")
MATH_SMALL = ("asin", "acos", "exp", "expm1", "sinh", "cosh", "atanh", "acosh")
NUMPY_ANY: tuple[str, ...] = (
    "abs",
    "fabs",
    "floor",
    "ceil",
    "trunc",
    "isnan",
    "isinf",
    "isfinite",
    "sign",
    "square",
    "cbrt",
)
NUMPY_ANY += (
    "sqrt",
    "log",
    "log10",
    "log2",
    "log1p",
    "exp",
    "expm1",
    "sin",
    "cos",
    "tan",
    "arcsin",
    "arccos",
)
NUMPY_ANY += (
    "arctan",
    "sinh",
    "cosh",
    "tanh",
    "arcsinh",
    "arccosh",
    "arctanh",
    "degrees",
    "radians",
    "deg2rad",
)
NUMPY_ANY += ("rad2deg", "float64")
NUMPY_TWO = ("arctan2", "hypot", "power", "minimum", "maximum", "fmin", "fmax", "mod", "copysign")
NUMPY_LOGIC = ("logical_and", "logical_or", "logical_xor")
MATH_TWO = ("atan2", "hypot", "pow", "fmod", "copysign", "log")
REDUCED: tuple[str, ...] = (
    "sum",
    "mean",
    "max",
    "min",
    "prod",
    "nansum",
    "nanmean",
    "nanmax",
    "nanmin",
    "argmax",
    "argmin",
    "ptp",
)
QUANTILES = ("percentile({0}, 25)", "percentile({0}, 97.5)", "nanpercentile({0}, 5)", "quantile({0}, 0.9)")
REDUCED += ("median", "nanmedian", "std", "var", "nanstd", "nanvar", "count_nonzero")
METHODS = ("mean", "max", "min", "sum", "std", "var", "prod", "argmax", "argmin")

TOP = """import math
import numpy as np
DEEP = True
LIMIT = 19.5
NAMES = ("g", "r", "i")
TABLE = {"g": 20.0, "r": 21.5, "i": None}
SET = frozenset({1, 5, 2.5, "y"})

def bright(alert, limit=LIMIT):
    if alert.magnitude is None:
        return False
    return alert.magnitude < limit

def twice(value):
    found = value * 2
    return found

def earlier(alert):
    return [p.flux for p in alert.history if p.band == alert.band and p.flux is not None]

def fluxes(alert):
    return np.array([p.flux for p in alert.history if p.flux is not None])

def above(values, limit):
    return values[values > limit]

def newest(alert):
    points = [p for p in alert.history if p.flux is not None]
    return points[-1].flux if len(points) > 0 else None

"""


WELL = "[p.{0} for p in a.history if p.{0} is not None]"
ORDERED = (
    f"sum(sorted({WELL})[-2:])",
    f"len(sorted({WELL}, reverse=True)[1:3])",
    "[s.mjd_tai for s in sorted(a.history, key=lambda p: p.{0} or {1})][0]",
    "sorted([(p.{0} or 0.5) / {1} for p in a.history], key=abs, reverse=True)[0]",
    "max(a.history, key=lambda p: p.{0} or {1}).mjd_tai",
    f"min({WELL}, key=lambda x: abs(x - {{1}}))",
    "len([p for p in sorted(a.history, key=lambda p: p.mjd_tai) if p.{0} is not None])",
)
CHOSEN = (
    'a.light_curve()["mjd_tai"][np.argmax(np.abs(a.light_curve()["flux"]))]',
    f"np.array({WELL})[np.argmin(np.array({WELL}))]",
    f"{WELL}[len({WELL}) // 2]",
    f"np.sum(np.where(np.array({WELL}) > {{1}}, np.array({WELL}), {{1}}))",
    'np.nanmax(np.where(a.light_curve()["flux"] > 0, a.light_curve()["mjd_tai"], 2))',
    f"np.mean(np.clip(np.array({WELL}), -{{1}}, {{1}}))",
    'np.nansum(np.clip(a.light_curve()["mjd_tai"], 0, None))',
    "np.clip(a.{0} or 0.5, 0, {1})",
    f"np.sum(np.diff(np.array({WELL})) > 0)",
    'np.nanmedian(np.diff(a.light_curve()["mjd_tai"]) / {1})',
    f"np.sum(np.array({WELL})[np.array([p.{{0}} > {{1}} for p in a.history if p.{{0}} is not None])])",
    f"np.sum(np.array({WELL}) ** 2) / {{1}}",
    f"sum({WELL}, 0.5)",
    f"len(set({WELL})) / {{1}}",
    'len({{s["band"] for s in a["prvDiaSources"] or []}})',
    f"a.{{0}} in {WELL}",
    "a.band in {{p.band for p in a.history}}",
    '(a["diaSource"]["band"] in [s["band"] for s in a["prvDiaSources"] or []])',
    'np.sum(np.isin(a.light_curve()["band"], ["g", "r"]))',
    f"np.sum(np.isin(np.array({WELL}), [0, {{1}}]))",
    "f'{{a.band}} {{a.{0}}}' < f'{{a.band}} {{a.visit:>9}}'",
    "f'{{a.{0} or 0.5:.2f}}' == '0.50'",
    "np.logical_not(a.{0})",
    'np.sum(a.magnitudes("r")) / {1}',
    'a.colour("g", "i")',
    "a.healpix_at(8) % {1}",
    *(f"np.{one.format('np.array(' + WELL + ')')} / {{1}}" for one in QUANTILES),
)

SEEN = 'any((s["psfFlux"] or 0) > 900 for s in a["prvDiaSources"])'
EVERY = (
    SEEN,
    *ORDERED,
    *CHOSEN,
    *(f"math.{name}((a.{{0}} or 0.5) / {{1}})" for name in (*MATH_ANY, *MATH_SMALL)),
    *(f"math.{name}(abs((a.{{0}} or 0.5) / {{1}}))" for name in MATH_POSITIVE),
    *(f"math.{name}(abs(a.{{0}} or 0.5), {{1}})" for name in MATH_TWO),
    *(f"np.{name}((a.{{0}} or 0.5) / {{1}})" for name in NUMPY_ANY),
    *(f"np.{name}(a.{{0}} or 0.5, {{1}})" for name in (*NUMPY_TWO, *NUMPY_LOGIC)),
    *(f"np.{name}(np.array([p.{{0}} or 0.5 for p in a.history])) / {{1}}" for name in REDUCED),
)
"""Every function, of something that is mostly there."""


class Filters:
    """Random filters, the same for the same *seed*; each has four of `EVERY` function, in turn."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._turn = 4 * seed

    def source(self) -> str:
        """Return a source whose function is ``keep``."""
        lines = ["def keep(a):"]
        names: list[str] = []
        for at in range(self.random.choice([0, 0, 1, 1, 2])):
            lines += self._assigned(f"x{at}", names)
            names.append(f"x{at}")
        for _ in range(self.random.choice([0, 0, 0, 1, 2])):
            lines.append(f"    if {self.truth(2, names)}:")
            lines.append(f"        return {self._verdict(2, names)}")
            if self.random.random() < 0.3:
                lines.append(f"    elif {self.truth(2, names)}:")
                lines.append(f"        return {self._verdict(2, names)}")
        for at in range(4):
            every = EVERY[(self._turn + at) % len(EVERY)]
            lines.append(
                f"    y{at} = {every.format(self._of('flux', 'snr', 'mjd_tai'), self._of(1.5, 900.0, 1e4))}"
            )
        names += ["y0", "y1", "y2", "y3"]
        lines.append(f"    return {self._verdict(4, names)}")
        return TOP + "\n".join(lines) + "\n"

    def _assigned(self, name: str, names: list[str]) -> list[str]:
        kind = self.random.random()
        if kind < 0.15:
            found = [f"    {name} = 0", "    for p in a.history:", f"        if {self._point_truth(1)}:"]
            return [*found, f"            {name} += {self._of('1', self._point_number(1))}"]
        if kind < 0.25:
            found = [f"    {name} = []", "    for p in a.history:", f"        if {self._point_truth(1)}:"]
            return [
                *found,
                f"            {name}.append({self._point_number(0)})",
                f"    {name} = len({name})",
            ]
        if kind < 0.4:
            found = [f"    {name} = {self.number(1, names)}", f"    if {self.truth(1, names)}:"]
            return [*found, f"        {name} = {self.number(1, names)}"]
        if kind < 0.5:
            found = [f"    {name} = {self.number(1, names)}"]
            return [*found, f"    {name} {self._of('+=', '-=', '*=')} {self.number(1, names)}"]
        return [f"    {name} = {self.number(2, names)}"]

    def _of(self, *choices: Any) -> str:
        one = self.random.choice(choices)
        return str(one)

    def _verdict(self, depth: int, names: list[str]) -> str:
        if self.random.random() < 0.8:
            return self.truth(depth, names)
        return self.number(depth, names) if self.random.random() < 0.8 else self.text(1, names)

    def truth(self, depth: int, names: list[str]) -> str:
        """Return a condition."""
        if depth == 0:
            return self._of(*TRUTHS, "bright(a)")
        make = self.random.choice(self._truths)
        return make(self, depth - 1, names)

    def number(self, depth: int, names: list[str]) -> str:
        """Return a number."""
        if depth == 0 or self.random.random() < 0.1:
            return self._of(*NUMBERS, *NUMBERS, *WHOLE, *names, self._constant(), self._constant(), "LIMIT")
        make = self.random.choice(self._numbers)
        return make(self, depth - 1, names)

    def text(self, depth: int, names: list[str]) -> str:
        """Return a text."""
        found = self._of(*TEXTS)
        if depth and self.random.random() < 0.5:
            return f"{found}.{self._of('lower', 'upper', 'strip')}()"
        return found

    def _constant(self) -> str:
        whole = self.random.choice([0, 1, 2, 3, 7, 20, 2**53, 2**62])
        return self._of(
            whole, round(self.random.gauss(0, 2_000), 1), round(self.random.uniform(0, 30), 2), -1.5
        )

    # conditions

    def _compared(self, depth: int, names: list[str]) -> str:
        sign = self._of("<", "<=", ">", ">=", "==", "!=")
        return f"({self.number(depth, names)} {sign} {self.number(depth, names)})"

    def _guarded(self, depth: int, names: list[str]) -> str:
        one = self._of(*NUMBERS)
        return f"({one} is not None and {one} {self._of('<', '>', '<=', '>=')} {self._constant()})"

    def _chained(self, depth: int, names: list[str]) -> str:
        signs = [self._of("<", "<=", ">", ">=", "==", "!=") for _ in range(2)]
        one, other = self.number(depth, names), self.number(depth, names)
        return f"({one} {signs[0]} {other} {signs[1]} {self._constant()})"

    def _both(self, depth: int, names: list[str]) -> str:
        return f"({self.truth(depth, names)} {self._of('and', 'or')} {self.truth(depth, names)})"

    def _not(self, depth: int, names: list[str]) -> str:
        return f"(not {self.truth(depth, names)})"

    def _either(self, depth: int, names: list[str]) -> str:
        return f"({self.truth(depth, names)} if {self.truth(depth, names)} else {self.truth(depth, names)})"

    def _texts(self, depth: int, names: list[str]) -> str:
        end = self._of('"m"', '"r"', '"%"')
        return self._of(
            f"({self.text(1, names)} {self._of('==', '!=', '<', '>=')} {self.text(1, names)})",
            f"{self.text(1, names)}.{self._of('startswith', 'endswith')}({end})",
            f"({self.text(1, names)} {self._of('in', 'not in')} NAMES)",
            f"({self.text(0, names)} in {{'g', 'y', 'main'}})",
            f"(len({self.text(1, names)}) > 1)",
        )

    def _among(self, depth: int, names: list[str]) -> str:
        return f"({self.number(depth, names)} in {self._of('(0, 1, 2.5, None)', 'SET', '[7, 20]')})"

    def _bits(self, depth: int, names: list[str]) -> str:
        sides = [
            self._of(self._compared(depth, names), f"np.isfinite({self.number(0, names)})") for _ in range(2)
        ]
        return f"({sides[0]} {self._of('&', '|', '^')} {sides[1]})"

    def _logical(self, depth: int, names: list[str]) -> str:
        return f"np.{self._of(*NUMPY_LOGIC)}({self.truth(depth, names)}, {self.truth(depth, names)})"

    def _quantified(self, depth: int, names: list[str]) -> str:
        if self.random.random() < 0.4:
            return f"{self._of('any', 'all')}({self._own_truth()} for s in {self._of(*OWN_POINTS)})"
        where = f" if {self._point_truth(1)}" if self.random.random() < 0.4 else ""
        return f"{self._of('any', 'all')}({self._point_truth(depth)} for p in {self._points()}{where})"

    def _of_array(self, depth: int, names: list[str]) -> str:
        sign = self._of("<", ">", "!=")
        return f"np.{self._of('any', 'all')}({self._array(depth)} {sign} {self.number(0, names)})"

    def _converted(self, depth: int, names: list[str]) -> str:
        number, text = self.number(depth, names), self.text(1, names)
        return self._of(f"bool({number})", f"bool({number})", f"bool({text})", f"({text} == {number})")

    # numbers

    def _arithmetic(self, depth: int, names: list[str]) -> str:
        sign = self._of("+", "-", "*", "/", "+", "-", "*", "//", "%")
        return f"({self.number(depth, names)} {sign} {self.number(depth, names)})"

    def _power(self, depth: int, names: list[str]) -> str:
        return f"({self.number(depth, names)} ** {self._of(2, 0.5, 3, -1, self.number(0, names))})"

    def _signed(self, depth: int, names: list[str]) -> str:
        return f"{self._of('-', '+', 'abs')}({self.number(depth, names)})"

    def _inverted(self, depth: int, names: list[str]) -> str:
        return f"(~{self._of(*WHOLE)})"

    def _rounded(self, depth: int, names: list[str]) -> str:
        number = self.number(depth, names)
        of_text = (
            f"({self._of('float', 'int')}({self.text(0, names)}) if {self.truth(0, names)} else {number})"
        )
        return self._of(
            f"round({number})", f"round({number}, 1)", f"int({number})", f"float({number})", of_text
        )

    def _extreme(self, depth: int, names: list[str]) -> str:
        more = f", {self.number(0, names)}" if self.random.random() < 0.3 else ""
        return f"{self._of('min', 'max')}({self.number(depth, names)}, {self.number(depth, names)}{more})"

    def _mathematics(self, depth: int, names: list[str]) -> str:
        number = self.number(depth, names)
        return self._of(
            f"math.{self._of(*MATH_ANY)}({number})",
            f"math.{self._of(*MATH_POSITIVE)}(abs({number}))",
            f"math.{self._of(*MATH_SMALL)}({number} / 1e4)",
            f"math.{self._of(*MATH_TWO)}({number}, {self.number(0, names)})",
            f"np.{self._of(*NUMPY_ANY)}({number})",
            f"np.{self._of(*NUMPY_TWO)}({number}, {self.number(0, names)})",
        )

    def _ternary(self, depth: int, names: list[str]) -> str:
        return f"({self.number(depth, names)} if {self.truth(depth, names)} else {self.number(depth, names)})"

    def _helped(self, depth: int, names: list[str]) -> str:
        return self._of(
            f"twice({self.number(depth, names)})", "newest(a)", "TABLE[a.band]", "TABLE.get(a.band, 1)"
        )

    def _listed(self, depth: int, names: list[str]) -> str:
        where = f" if {self._point_truth(1)}" if self.random.random() < 0.7 else ""
        values = f"{self._point_number(depth)} for p in {self._points()}{where}"
        return self._of(
            f"sum({values})",
            f"len([{values}])",
            f"{self._of('max', 'min')}([{values}])",
            f"{self._of('max', 'min')}(({values}), default={self._of(0, 1.5, None)})",
            f"[{values}][{self._of(0, -1, 1)}]",
            f"len([{values}][{self._of('-2:', '1:', ':3', '1:-1')}])",
            f"np.{self._of('mean', 'median', 'max')}([{values}])",
            f"np.{self._of(*REDUCED)}(np.array([{values}]))",
            f"np.{self._of(*REDUCED)}(np.array([{values}], dtype=float))",
            "sum(earlier(a))",
            f"sorted({self._values(depth)}{self._of('', ', reverse=True')})[{self._of(0, -1, 1)}]",
            f"len(sorted({self._points()}, key=lambda p: {self._point_number(depth)})[1:])",
            f"sorted({self._points()}, key=lambda q: q.{self._of('flux', 'snr')})[{self._of(0, -1)}].flux",
            f"{self._of('max', 'min')}({self._points()}, key=lambda p: {self._point_number(depth)}).mjd_tai",
            f"{self._of('max', 'min')}(({values}), key=abs)",
        )

    def _own(self, depth: int, names: list[str]) -> str:
        where = f" if {self._own_truth()}" if self.random.random() < 0.7 else ""
        values = f"{self._of(*OWN_NUMBERS)} for s in {self._of(*OWN_POINTS)}{where}"
        return self._of(
            f"sum({values})",
            f"len([{values}])",
            f"{self._of('max', 'min')}([{values}])",
            f"{self._of('max', 'min')}(({values}), default={self._of(0, 1.5, None)})",
            f"[{values}][{self._of(0, -1)}]",
            f"np.{self._of(*REDUCED)}(np.array([{values}], dtype=float))",
            f"np.{self._of(*QUANTILES).format(f'np.array([{values}])')}",
            f"sorted([{values}]{self._of('', ', reverse=True')})[{self._of(0, -1)}]",
            f"{self._of('max', 'min')}(({values}), key=abs)",
        )

    def _own_truth(self) -> str:
        one = self._of(*OWN_NUMBERS)
        return self._of(
            f"{one} is not None",
            f"{one} is not None and {one} {self._of('<', '>')} {self._constant()}",
            f's["band"] {self._of("==", "!=")} {self._of("a.band", chr(34) + "r" + chr(34))}',
            f"{one} {self._of('<', '>', '<=', '>=', '==')} {self._constant()}",
        )

    def _values(self, depth: int) -> str:
        return self._of(
            f"[{self._point_number(depth)} for p in {self._points()}]",
            f"({self._point_number(0)} for p in {self._points()} if {self._point_truth(1)})",
            self._array(depth),
            "[p.band for p in a.history]",
            f"[{self._point_truth(1)} for p in {self._points()}]",
        )

    def _reduced(self, depth: int, names: list[str]) -> str:
        array = self._array(depth)
        return self._of(
            f"np.{self._of(*REDUCED)}({array})",
            f"np.{self._of('std', 'var')}({array}, ddof=1)",
            f"np.percentile({array}, {self._of(10, 50, 90)})",
            f"({array}).{self._of(*METHODS)}()",
            f"({array}).size",
            f"({array})[{self._of(0, -1)}]",
            f"({array})[np.{self._of('argmax', 'argmin')}({array})]",
            f"({array})[{self.number(0, names)}]",
            f"np.{self._of(*QUANTILES).format(array)}",
        )

    def _array(self, depth: int) -> str:
        curve = f'a.light_curve()["{self._of(*CURVE)}"]'
        if depth <= 0:
            return curve
        sign = self._of("==", "!=")
        red = f'a.light_curve()["band"] {sign} "r"'
        return self._of(
            curve,
            f"{curve}[{red}]",
            f"{curve}[-3:]",
            f"({curve} {self._of('+', '-', '*', '/')} {self._of(2, 1.5, curve)})",
            f"({curve} ** {self._of(2, 0.5)})",
            f"np.{self._of('abs', 'log10', 'sqrt', 'sign')}({curve})",
            f"({curve} - np.nanmedian({curve}))",
            f"{curve}[np.isfinite({curve}) & ({curve} > 0)]",
            f"{curve}[~np.isnan({curve})]",
            f"np.{self._of('hypot', 'maximum')}({curve}, {curve})",
            f"-{curve}",
            'a.magnitudes("r")',
            f"np.diff({curve})",
            f"np.diff({curve} > 0)",
            f"np.diff(np.array([p.flux for p in {self._points()} if p.flux is not None]))",
            f"np.where({curve} {self._of('<', '>')} {self._constant()}, {curve}, {self._of(0, 'a.flux')})",
            f"np.where({red}, {self._of(1, 'a.snr', curve)}, {curve})",
            f"np.clip({curve}, {self._of('None', 0, -50.5, 'a.snr')}, {self._of(900, 1e4, 'a.flux')})",
            "fluxes(a)",
            f"above(fluxes(a), {self._constant()})",
            f"above({curve}, {self._of(*NUMBERS)})",
            f"np.array([{self._point_number(0)} for p in {self._points()}])",
            "fluxes(a)[np.array([p.band in NAMES for p in a.history if p.flux is not None])]",
            "fluxes(a)[~np.array([p.snr > 5 for p in a.history if p.flux is not None])]",
        )

    def _points(self) -> str:
        return self._of("a.history", "a.history", "a.history[-4:]", "a.history[1:]")

    def _point_number(self, depth: int) -> str:
        number = self._of(*POINT_NUMBERS)
        if depth <= 0:
            return number
        return self._of(
            number,
            f"({number}) {self._of('+', '-', '*', '/')} {self._constant()}",
            f"abs({number})",
            f"({number}) - a.flux",
            f"math.sqrt(abs({number}))",
            f"({number}) ** 2",
        )

    def _point_truth(self, depth: int) -> str:
        number = self._of("p.flux", "p.magnitude", "p.snr", "p.mjd_tai")
        band = self._of("a.band", '"r"', '"g"')
        return self._of(
            f"{number} is not None",
            f"{number} is not None and {number} {self._of('<', '>')} {self._constant()}",
            f"p.band {self._of('==', '!=')} {band}",
            "p.band in NAMES",
            f"{self._point_number(depth - 1)} {self._of('<', '>', '<=', '>=', '==')} {self._constant()}",
        )

    _truths: tuple[Callable[..., str], ...] = (
        *(_compared, _compared, _guarded, _guarded, _guarded, _chained, _both, _both, _both, _not, _either),
        *(_texts, _among, _bits, _logical, _quantified, _quantified, _of_array, _converted),
    )
    _numbers: tuple[Callable[..., str], ...] = (
        *(
            _arithmetic,
            _arithmetic,
            _power,
            _signed,
            _inverted,
            _rounded,
            _extreme,
            _mathematics,
            _mathematics,
        ),
        *(_mathematics, _ternary, _helped, _listed, _listed, _own, _reduced, _reduced),
    )
