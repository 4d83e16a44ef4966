"""A notebook to begin with: valid, and run from top to bottom it makes a filter live."""

import json
from importlib.resources import files
from typing import Any

from nightwire.schemas import survey
from nightwire.schemas.topics import check_name

TEMPLATE = files("nightwire.filters") / "templates" / "filter.ipynb"


def notebook(name: str, of_survey: str) -> str:
    """Return a notebook (nbformat 4.5, as JSON text) for a filter of that name.

    Raises:
        NameError_: It is no name for a filter.
        SchemaError: There is no such survey.
    """
    check_name(name)
    described = survey(of_survey).description
    words = {
        "@NAME@": name,
        "@SURVEY@": of_survey,
        "@TITLE@": described.title,
        "@RECORD@": described.source.path,
        "@FIELD@": described.source.flux or described.source.magnitude or described.source.time,
    }
    return json.dumps(_filled(json.loads(TEMPLATE.read_text(encoding="utf-8")), words), indent=1) + "\n"


def _filled(part: Any, words: dict[str, str]) -> Any:
    if isinstance(part, dict):
        return {key: _filled(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(value, words) for value in part]
    if isinstance(part, str):
        for mark, word in words.items():
            part = part.replace(mark, word)
    return part
