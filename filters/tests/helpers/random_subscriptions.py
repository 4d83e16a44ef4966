"""Random conditions with odd constants, mostly on one term each: nearly all have normal forms."""

import random

TERMS = (
    *("magnitude", "snr", "diaSource.psfFlux", "ABS(diaSource.psfFlux)", "-dec", "ABS(-magnitude)"),
    *("id", "visit", "diaSource.psfNdata", "diaSource.parentDiaSourceId", "solar_system_id"),
    *("diaSource.isDipole", "band", "diaSource.reason", "COALESCE(diaSource.reason, 'AP')"),
    *("COALESCE(magnitude, 21)", "COALESCE(ABS(snr), NULL)", "flux / 2", "ra + dec", "LOWER(band)"),
    *(
        "diaSource.nothing",
        "diaSource.psfNdata * 2",
        "diaObject.nDiaSources",
        "prvDiaSources.ra",
        "5",
        "NULL",
    ),
)
NUMBERS = (
    *("0", "-0.0", "1", "-1", "2", "7", "20.5", "1e999", "-1e999", "1e999 - 1e999", "1e308", "5e-324"),
    *("9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775807"),
    *("9223372036854775808.0", "4611686018427387904", "4611686018427387905", "TRUE", "FALSE", "NULL"),
)
TEXTS = ("''", "'r'", "'R'", "'AP'", "'main'", "'Main'", "'a_b%'", "'nan'", "'β Lyr'", "'i'")
PATTERNS = ("'m%'", "'R'", "'%'", "''", "'a_%'", "'MAI%'", "'β%'", "'rr%'")
SIGNS = ("<", "<=", ">", ">=", "=", "<>")


class Subscriptions:
    """Makes random conditions, the same for the same *seed*."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self) -> str:
        """Return a conjunction of conditions, most of them on one term each."""
        parts = [self.on(self.random.choice(TERMS), 3) for _ in range(self.random.choice([1, 1, 2, 3]))]
        if self.random.random() < 0.1:
            return f"NOT ({' OR '.join(parts)})"
        return self.random.choice(["({})", "TRUE AND ({})"]).format(") AND (".join(parts))

    def on(self, term: str, depth: int) -> str:
        """Return a condition on one *term*, *depth* levels deep at most."""
        if depth == 0 or self.random.random() < 0.3:
            return self._atom(term)
        one = self.on(term, depth - 1)
        kind = self.random.random()
        if kind < 0.2:
            return f"NOT ({one})"
        if kind < 0.25:
            return f"({one}) = {self.random.choice(['TRUE', 'FALSE', 'NULL', '1'])}"
        sign = "AND" if kind < 0.6 else "OR"
        other = self._atom(self.random.choice(TERMS)) if kind > 0.97 else self.on(term, depth - 1)
        return f"({one}) {sign} ({other})"

    def _atom(self, term: str) -> str:
        kind = self.random.randrange(8)
        if kind == 0:
            return f"{term} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == 1:
            return self.random.choice([term, "TRUE", "FALSE", "NULL", "3 < 4", "'a' < 4", "5"])
        if kind == 2:
            return f"{term} BETWEEN {self._constant(term)} AND {self._constant(term)}"
        if kind == 3:
            some = ", ".join(self._constant(term) for _ in range(self.random.randrange(1, 4)))
            return f"{term} {self.random.choice(['', 'NOT '])}IN ({some})"
        if kind == 4 and self._text(term):
            return f"{term} LIKE {self.random.choice(PATTERNS)}"
        sides = [term, self.random.choice(SIGNS), self._constant(term)]
        return " ".join(sides if self.random.random() < 0.8 else sides[::-1])

    def _text(self, term: str) -> bool:
        return any(word in term for word in ("band", "reason")) != (self.random.random() < 0.03)

    def _constant(self, term: str) -> str:
        if self._text(term):
            return self.random.choice(TEXTS)
        if self.random.random() < 0.3:
            return repr(round(self.random.gauss(0, 2_000), self.random.choice([0, 2])))
        return self.random.choice(NUMBERS)
