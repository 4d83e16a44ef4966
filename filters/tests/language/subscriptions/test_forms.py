"""Normal forms: what they pass is what the condition passes, to the last odd value."""

import numpy as np
import pytest

from filters.tests.helpers.random_alerts import alerts, table
from filters.tests.helpers.random_subscriptions import Subscriptions
from nightwire.filters.language import compile_sql, evaluate_all
from nightwire.filters.language.subscriptions import NormalForm, Term, ValueSet, matches, normal_form
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
    return sum(form is not None for form in forms.values())


@pytest.mark.slow
def test_a_normal_form_passes_what_its_condition_passes() -> None:
    assert sum(agreed(range(begin, begin + 100)) for begin in range(0, 1_000, 100)) > 700
