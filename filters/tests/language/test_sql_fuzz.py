"""SQL conditions, mangled, 100,000 of them (a proof: ten million): compiled, or refused, and not
kept.
"""

import random

import pytest

from nightwire.filters.language import FilterError, Program, compile_sql, sql_conditions
from tests._mutated import COUNTS, ROOM, most_memory

SOUND = [
    "magnitude < 19 AND ABS(galactic_latitude) > 10 AND band IN ('g', 'r') AND diaSource.reliability > 0.7",
    "flux BETWEEN 1 AND 2e5 OR NOT (snr IS NOT NULL) AND band LIKE 'g%'",
    "CASE WHEN flux > 1 THEN 2 WHEN snr IN (1, 2.5, 'x', NULL) THEN 3 ELSE -4 END > POWER(2, 3) % 7;",
    "WHERE COALESCE(flux, snr, 1) NOT IN (123456789012345678, 0, -1) AND ROUND(flux, 2) = 1.5",
    'IF(flux > 1, 1, 0) = 1 AND NULLIF(a.b.c, 2) <> 3 AND `x y` = "a"',
]
STRANGE = [
    *("(", ")", ",", "AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "CASE", "WHEN", "THEN"),
    *("END", "ELSE", "'", "''", '"', "`", ";", ".", "1e999", "0x1", "9" * 30, "9" * 5000, "flux", "a.x"),
    *("WHERE", "%", "/", "-", "+", "||", "<>", "!=", "\n", "\ud800", "\0", "ESCAPE", "TRUE", "PI()", "IF("),
]


def mangled(chance: random.Random) -> str:
    """Return a condition with some of its parts changed, cut out, repeated, or strange."""
    text = chance.choice(SOUND)
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(0, len(text))
        end = chance.randint(at, len(text))
        match chance.randint(0, 3):
            case 0:
                text = f"{text[:at]} {chance.choice(STRANGE)} {text[at:]}"
            case 1:
                text = text[:at] + text[min(end, at + 8) :]
            case 2:
                text = text[:at] + chr(chance.randint(0, 0x10FFFF)) + text[at:]
            case _:
                text = text[:at] + text[at:end] * chance.randint(1, 4) + text[end:]
    return text


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_a_mangled_condition_is_compiled_or_refused(count: int) -> None:
    chance, outcomes = random.Random(20261123), [0, 0]
    before = most_memory()
    for number in range(count):
        text = mangled(chance)
        try:
            program = compile_sql(text, "sim")
            outcomes[bool(sql_conditions(text))] += 1
            if number % 10 == 0:  # what a program may not hold is refused when it is read
                assert Program.loads(program.dumps()) == program
        except FilterError:
            continue
    assert outcomes[True] > count / 20
    assert most_memory() - before < ROOM
