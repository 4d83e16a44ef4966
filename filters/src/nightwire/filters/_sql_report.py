"""What an SQL condition does with a sample: judged over columns, each part of its top ``AND`` by itself."""

import time
from collections.abc import Iterator, Sequence

import numpy as np

from nightwire.filters._columns import table_of
from nightwire.filters._decoding import NoColumn
from nightwire.filters._recent import Sample
from nightwire.filters._report import Judged, Report
from nightwire.filters.language import FilterError, compile_sql, evaluate
from nightwire.filters.language._sql_words import Word, words
from nightwire.schemas import AlertDecoder, SchemaRegistry, survey


def conditions(condition: str) -> list[str]:
    """Return the parts that a condition's outermost ANDs join; the whole where an OR joins it.  Pure.

    Raises:
        FilterError: Something in it is no word.
    """
    found = [word for word in words(condition) if (word.kind, word.text) != ("keyword", "WHERE")]
    cuts = list(_cuts(found))
    if any(word.text == "OR" for word in cuts):
        cuts = []
    starts = [found[0].at, *(word.at + len("AND") for word in cuts)]
    ends = [*(word.at for word in cuts), found[-1].at]
    parts = (condition[start:end] for start, end in zip(starts, ends, strict=True))
    return [" ".join(part.strip().rstrip(";").split()) for part in parts]


def _cuts(found: Sequence[Word]) -> Iterator[Word]:
    """Yield the ANDs and ORs outside of brackets, CASE and BETWEEN."""
    depth = between = 0
    for word in found:
        if word.text in ("(", "CASE") and word.kind in ("sign", "keyword"):
            depth += 1
        elif word.text in (")", "END") and word.kind in ("sign", "keyword"):
            depth -= 1
        elif word.kind == "keyword" and depth == 0:
            if word.text == "BETWEEN":
                between += 1
            elif word.text == "AND" and between:
                between -= 1
            elif word.text in ("AND", "OR"):
                yield word


def sql_report(condition: str, of_survey: str, samples: Sequence[Sample], registry: SchemaRegistry) -> Report:
    """Judge *samples*, a survey's alerts, by an SQL condition.

    Raises:
        FilterError: It is no condition, or reads what these alerts do not have.
    """
    parts = conditions(condition)
    programs = [compile_sql(condition, of_survey), *(compile_sql(part, of_survey) for part in parts)]
    values, decoder = [value for _, value in samples], AlertDecoder(registry)
    names = {name for program in programs for name in program.names}
    began = time.perf_counter()
    try:
        table, rows = table_of(values, names, of_survey, decoder)
        whole = evaluate(programs[0], table).passed
        cost = 1e6 * (time.perf_counter() - began) / max(1, len(rows))
        each = [evaluate(program, table).passed for program in programs[1:]]
    except KeyError as error:
        raise FilterError(f"alerts of survey {of_survey} have no {error.args[0]}") from error
    except NoColumn as error:
        raise FilterError(f"the schemas of survey {of_survey} differ: {error}") from error
    alerts = [survey(of_survey).view(decoder.decode(values[row]).alert) for row in rows]
    stopped = [
        next((part for part, ok in zip(parts, each, strict=True) if not ok[at]), None)
        for at in range(len(rows))
    ]
    judged = [
        Judged(alert, bool(passed), stopped=None if passed else why or condition)
        for alert, passed, why in zip(alerts, np.asarray(whole), stopped, strict=True)
    ]
    return Report("the condition", judged, cost, cost, ["compiled: judged over columns"])
