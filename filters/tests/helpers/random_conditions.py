"""Random conditions that Python and SQL can both say, in the words of each.

Nothing is unknown in them: each comparison asks beforehand whether there is anything to compare, so
that Python's faults and SQL's NULL do not come up.
"""

import random
from dataclasses import dataclass

COLUMNS = (
    *(
        "flux",
        "magnitude",
        "snr",
        "ra",
        "dec",
        "mjd_tai",
        "flux_error",
        "galactic_latitude",
        "visit",
        "healpix",
    ),
    *("diaSource.reliability", "diaSource.trailLength", "diaSource.psfNdata", "diaSource.parentDiaSourceId"),
    *("diaSource.psfFlux", "diaSource.psfFluxErr", "diaSource.midpointMjdTai"),
)
WHOLE = ("visit", "healpix", "diaSource.psfNdata", "diaSource.parentDiaSourceId", "id", "object_id")
POINT = ("flux", "magnitude", "snr", "mjd_tai")


OF_SMALL = (
    *(
        (f"math.{name.lower()}(3.0 * {{0}})", f"{name}(3.0 * {{0}})")
        for name in ("SIN", "COS", "TAN", "DEGREES")
    ),
    *((f"math.{name.lower()}({{0}} / 1.6)", f"{name}({{0}} / 1.6)") for name in ("ASIN", "ACOS")),
    *((f"math.{name.lower()}({{0}} * 9.0)", f"{name}({{0}} * 9.0)") for name in ("FLOOR", "CEIL")),
    ("math.fmod({0} * 9.0, 0.7)", "MOD({0} * 9.0, 0.7)"),
    ("math.copysign(math.floor(abs({0} * 9.0) + 0.5), {0})", "ROUND({0} * 9.0)"),
    ("round({0} * 9.0, 1)", "ROUND({0} * 9.0, 1)"),
)
"""Functions of what lies between -1.6 and 1.6, in Python and in SQL."""


@dataclass(frozen=True)
class Phrase:
    """The same in Python, in our SQL (None where that has no words for it), and in SQLite's."""

    python: str
    sql: str | None
    lite: str
    reads: frozenset[str] = frozenset()


def column(name: str) -> Phrase:
    """Return a column."""
    path = "".join(f'["{step}"]' for step in name.split("."))
    return Phrase(f"a{path}" if "." in name else f"a.{name}", name, f'alerts."{name}"', frozenset({name}))


class Conditions:
    """Makes random conditions, the same for the same *seed*."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self, depth: int = 4) -> Phrase:
        """Return a condition, *depth* levels deep."""
        if depth <= 0:
            return self._atom()
        kind = self.random.random()
        one = self.condition(depth - 1)
        if kind < 0.15:
            return _put("(not {0})", "NOT {0}", [one])
        other = self.condition(depth - self.random.choice([1, 1, 2]))
        if kind < 0.55:
            return _put("({0} and {1})", "({0} AND {1})", [one, other])
        if kind < 0.9:
            return _put("({0} or {1})", "({0} OR {1})", [one, other])
        third = self._atom()
        return _put("({0} if {2} else {1})", "(CASE WHEN {2} THEN {0} ELSE {1} END)", [one, other, third])

    def _atom(self) -> Phrase:
        make = self.random.choice(
            [
                self._compared,
                self._compared,
                self._compared,
                self._between,
                self._text,
                self._null,
                self._earlier,
            ]
        )
        return make()

    def _compared(self) -> Phrase:
        left, right = (
            self._number(self.random.choice([0, 1, 1, 2])),
            self._number(self.random.choice([0, 0, 1])),
        )
        sign = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        same = {"==": "="}.get(sign, sign)
        # NaN, which SQL takes for NULL, is equal to nothing
        unknown = "TRUE" if sign == "!=" else "FALSE"
        return self._known(
            _put(f"({{0}} {sign} {{1}})", f"COALESCE({{0}} {same} {{1}}, {unknown})", [left, right])
        )

    def _known(self, one: Phrase) -> Phrase:
        """Return *one*, if all that it reads is there."""
        for name in sorted(one.reads):
            read = column(name)
            nan = "" if name in WHOLE else f" and {read.python} == {read.python}"
            guard = f"({read.python} is not None{nan} and {one.python})"
            sql = None if one.sql is None else f"({name} IS NOT NULL AND {one.sql})"
            one = Phrase(guard, sql, f"({read.lite} IS NOT NULL AND {one.lite})")
        return one

    def _between(self) -> Phrase:
        low, high = sorted(self.random.gauss(0, 2_000) for _ in range(2))
        one = column(self.random.choice(COLUMNS))
        if self.random.random() < 0.3:
            return self._known(_put("({0} in (1, 2, 3, 7))", "{0} IN (1, 2, 3, 7)", [one]))
        return self._known(
            _put(f"({low!r} <= {{0}} <= {high!r})", f"({{0}} BETWEEN {low!r} AND {high!r})", [one])
        )

    def _text(self) -> Phrase:
        one = column(self.random.choice(["band", "diaSource.reason"]))
        found = self.random.choice(
            [
                _put('({0} == "r")', "{0} = 'r'", [one]),
                _put('({0} in ("g", "i", "AP"))', "{0} IN ('g', 'i', 'AP')", [one]),
                _put('({0}.lower() == "main")', "LOWER({0}) = 'main'", [one]),
                _put('({0}.lower().startswith("m"))', "{0} LIKE 'm%'", [one]),
                _put("(len({0}) > 1)", "LENGTH({0}) > 1", [one]),
                _put('({0}.upper() == "MAIN")', "UPPER({0}) = 'MAIN'", [one]),
                _put('({0} >= "i")', "{0} >= 'i'", [one]),
            ]
        )
        read = next(iter(one.reads))
        guarded = Phrase(found.python, found.sql, found.lite)
        return Phrase(
            f"({one.python} is not None and {guarded.python})",
            f"({read} IS NOT NULL AND {guarded.sql})",
            f"({one.lite} IS NOT NULL AND {guarded.lite})",
        )

    def _null(self) -> Phrase:
        one = column(self.random.choice(["solar_system_id", "band", *WHOLE]))
        return _put("({0} is None)", "({0} IS NULL)", [one], reads=False)

    def _earlier(self) -> Phrase:
        """Return something of the history, which SQLite has as a table."""
        name, sign = self.random.choice(POINT), self.random.choice(["<", ">"])
        limit = repr(round(self.random.choice([self.random.gauss(0, 3_000), self.random.uniform(0, 30)]), 2))
        of = f"FROM history AS p WHERE p.alert = alerts.at AND p.{name} IS NOT NULL"
        points = f"for p in a.history if p.{name} is not None"
        count, true = self.random.randrange(4), f"p.{name} {sign} {limit}"
        return self.random.choice(
            [
                Phrase(f"any({true} {points})", None, f"EXISTS(SELECT 1 {of} AND {true})"),
                Phrase(f"all({true} {points})", None, f"NOT EXISTS(SELECT 1 {of} AND NOT {true})"),
                Phrase(f"(len([1 {points}]) > {count})", None, f"((SELECT COUNT(*) {of}) > {count})"),
                Phrase(f"(sum(1 {points}) > {count})", None, f"((SELECT COUNT(*) {of}) > {count})"),
                Phrase(
                    f"(max((p.{name} {points}), default=0) {sign} {limit})",
                    None,
                    f"(COALESCE((SELECT MAX(p.{name}) {of}), 0) {sign} {limit})",
                ),
                Phrase(
                    f"(min((p.{name} {points} and p.band == 'r'), default=0.5) {sign} {limit})",
                    None,
                    f"(COALESCE((SELECT MIN(p.{name}) {of} AND p.band = 'r'), 0.5) {sign} {limit})",
                ),
            ]
        )

    def _number(self, depth: int) -> Phrase:
        if depth <= 0:
            whole = self.random.choice([0, 1, 5, 20, 2**53 + 1])
            wide, near = round(self.random.gauss(0, 2_000), 2), round(self.random.uniform(0, 30), 2)
            value = repr(self.random.choice([whole, wide, near]))
            return self.random.choice([column(self.random.choice(COLUMNS)), Phrase(value, value, value)])
        one, other = self._real(), self._real()
        # finite, and no large number, whatever it is of
        small = _put("math.atan({0})", "ATAN({0})", [one])
        if self.random.random() < 0.5:
            return _put(*self.random.choice(OF_SMALL), [small])
        return self.random.choice(
            [
                small,
                _put("math.atan2({0}, {1})", "ATAN2({0}, {1})", [small, other]),
                _put("({0} + {1})", "({0} + {1})", [one, other]),
                _put("({0} - {1})", "({0} - {1})", [one, other]),
                _put("({0} * {1})", "({0} * {1})", [one, other]),
                _put("({0} / (abs({1}) + 1.5))", "({0} / (ABS({1}) + 1.5))", [one, other]),
                _put("(-{0})", "(-{0})", [one]),
                _put("abs({0})", "ABS({0})", [one]),
                _put("math.sqrt(abs({0}))", "SQRT(ABS({0}))", [one]),
                _put("math.log10(abs({0}) + 1.0)", "LOG10(ABS({0}) + 1.0)", [one]),
                _put("math.log(abs({0}) + 1.0)", "LN(ABS({0}) + 1.0)", [one]),
                _put("math.exp(-abs({0}))", "EXP(-ABS({0}))", [one]),
                _put("math.log2(abs({0}) + 1.0)", "LOG2(ABS({0}) + 1.0)", [one]),
                _put("math.radians({0})", "RADIANS({0})", [one]),
                _put("math.pow(abs({0}), 0.25)", "POWER(ABS({0}), 0.25)", [one]),
                _least("min", "LEAST", [one, other]),
                _least("max", "GREATEST", [one, other]),
            ]
        )

    def _real(self) -> Phrase:
        names = [name for name in COLUMNS if name not in WHOLE]
        return self.random.choice([column(self.random.choice(names)), self._constant()])

    def _constant(self) -> Phrase:
        value = repr(round(self.random.uniform(0.01, 900), 2))
        return Phrase(value, value, value)


def _least(python: str, sql: str, parts: list[Phrase]) -> Phrase:
    found = _put(f"{python}({{0}}, {{1}})", f"{sql}({{0}}, {{1}})", parts)
    return Phrase(found.python, found.sql, f"{python}({parts[0].lite}, {parts[1].lite})", found.reads)


def _put(python: str, sql: str, parts: list[Phrase], *, reads: bool = True) -> Phrase:
    """Return the phrase that is made of *parts*."""
    ours = None if any(one.sql is None for one in parts) else sql.format(*(one.sql for one in parts))
    found = frozenset[str]().union(*(one.reads for one in parts)) if reads else frozenset[str]()
    return Phrase(
        python.format(*(one.python for one in parts)), ours, sql.format(*(one.lite for one in parts)), found
    )
