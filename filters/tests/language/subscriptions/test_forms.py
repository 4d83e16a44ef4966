"""Normal forms: what they pass is what the condition passes, to the last odd value."""

import math

import numpy as np
import pytest

from filters.tests.helpers.random_alerts import alerts, table
from filters.tests.helpers.random_subscriptions import Subscriptions
from nightwire.filters.language import compile_python, compile_sql, evaluate_all
from nightwire.filters.language.subscriptions import NormalForm, Term, ValueSet, bound, matches, normal_form
from nightwire.filters.language.vector.run import Run
from nightwire.filters.language.vector.values import objects
from nightwire.schemas import AlertTable

FLUX = "diaSource.psfFlux"


def form_of(condition: str) -> NormalForm | None:
    return normal_form(compile_sql(condition, "sim"))


def sets_of(condition: str) -> dict[str, ValueSet]:
    found = form_of(condition)
    assert found is not None
    return {term.text: some for term, some in found.sets.items()}


class Rows:
    """The values of terms over a table, row by row, and where a term has a fault."""

    def __init__(self, columns: AlertTable) -> None:
        self._run = Run(columns)
        self._known: dict[Term, list[object]] = {}

    def passed(self, form: NormalForm) -> list[bool]:
        """Return which rows match, faults none."""
        with np.errstate(all="ignore"):
            known = {term: self._values(term) for term in form.sets}
        rows = [{term: values[at] for term, values in known.items()} for at in range(self._run.size)]
        return [FAULT not in row.values() and matches(row, form) for row in rows]

    def _values(self, term: Term) -> list[object]:
        if term not in self._known:
            value = term.values(self._run)
            found = objects(value, np.arange(self._run.size))
            if value.fault is not None:
                found = [FAULT if fault else one for fault, one in zip(value.fault, found, strict=True)]
            self._known[term] = found
        return self._known[term]


FAULT = object()


def agreed(seeds: range) -> int:
    """Check that normal forms and conditions agree on all alerts; return how many there are."""
    columns = table(alerts(seeds.start, 60))
    texts = {text: compile_sql(text, "sim") for text in (Subscriptions(seed).condition() for seed in seeds)}
    forms = {text: normal_form(program) for text, program in texts.items()}
    verdicts = evaluate_all(list(texts.values()), columns)
    rows = Rows(columns)
    for text, said in zip(texts, verdicts, strict=True):
        if (form := forms[text]) is not None:
            assert rows.passed(form) == said.passed.tolist(), (seeds.start, text)
            assert not len(said.needs_python)
        lies_in = rows.passed(bound(texts[text]))
        assert all(lies_in[at] for at in said.passed.nonzero()[0]), (seeds.start, text)
    return sum(form is not None for form in forms.values())


@pytest.mark.slow
def test_a_normal_form_passes_what_its_condition_passes() -> None:
    assert sum(agreed(range(begin, begin + 100)) for begin in range(0, 1_000, 100)) > 700


@pytest.mark.proof
@pytest.mark.timeout(3600)
def test_fifty_thousand_conditions_pass_what_their_normal_forms_pass() -> None:
    assert sum(agreed(range(begin, begin + 100)) for begin in range(10_000, 60_000, 100)) > 40_000


def test_an_absolute_value_is_two_intervals() -> None:
    lower, upper = ((-math.inf, False), (-15, False)), ((15, True),)
    assert sets_of("ABS(dec) > 15") == {"dec": ValueSet((*lower, *upper))}
    assert sets_of("NOT ABS(-dec) <= 15 AND dec < 80") == {"dec": ValueSet((*lower, *upper, (80, False)))}


def test_constraints_on_one_term_are_one_set() -> None:
    r, g = ("r", "r\0"), ("g", "g\0")
    assert (
        sets_of("band = 'r' OR band = 'g'")
        == sets_of("band IN ('r', 'g')")
        == {"band": ValueSet(texts=(*g, *r))}
    )
    assert sets_of("snr BETWEEN 2 + 3 AND 9") == {"snr": ValueSet(((5, False), (9, True)))}
    assert sets_of("band IS NULL OR band LIKE 'r%'") == {
        "band": ValueSet(texts=("R", "S", "r", "s"), null=True)
    }
    assert sets_of("visit <> 3") == {
        "visit": ValueSet(((-math.inf, False), (3, False), (3, True)), texts=("",))
    }


def test_terms_are_what_is_computed_whatever_stands_before() -> None:
    (one,), (two,) = (
        sets_of("flux / flux_error > 5"),
        set(sets_of("dec < 3 AND flux / flux_error < 9")) - {"dec"},
    )
    assert one == two
    (odd,) = sets_of(f"`{one}` > 3")
    assert odd not in (one, two)


@pytest.mark.parametrize(
    "condition",
    [
        "snr > 5 OR magnitude < 20",
        "snr > magnitude",
        "band LIKE 'a_b'",
        "ROUND(snr, 2) > 5",
        "NOT (snr > 5 AND dec > 3)",
    ],
)
def test_what_has_no_normal_form_has_none(condition: str) -> None:
    assert form_of(condition) is None


def test_python_has_no_normal_form() -> None:
    """A comparison with nothing is another one there."""
    assert normal_form(compile_python("def keep(alert):\n    return alert.snr == 5\n")) is None


def test_true_has_no_sets_and_what_nothing_passes_is_empty() -> None:
    assert form_of("TRUE") == form_of("3 < 4 AND NOT FALSE") == NormalForm()
    for condition in ("FALSE", "NULL", "snr > 5 AND snr < 3", "snr = NULL", "dec > 'a' AND dec < 3"):
        assert form_of(condition) == NormalForm(empty=True)
    assert form_of("snr > 5 OR TRUE") != NormalForm()  # where there is no snr, it has a fault


def test_letters_without_capitals_cost_a_pattern_nothing() -> None:
    """Two thousand of them took 54 ms each."""
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 2_000)))
    assert sets_of(f"band LIKE '{text}'")["band"].texts == (text, text + "\0")
    assert {one for one in "sSſ" if one in sets_of("band LIKE 's'")["band"]} == {*"sSſ"}
