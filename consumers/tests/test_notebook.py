"""The notebook of ten lines runs as it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[1] / "notebooks" / "read-a-filter.ipynb"


def code() -> list[str]:
    cells = json.loads(PATH.read_text())["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_it_has_ten_lines_at_most_and_no_outputs() -> None:
    cells = json.loads(PATH.read_text())["cells"]
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]
    assert sum(len(text.splitlines()) for text in code()) <= 10


@pytest.mark.kafka
def test_it_shows_the_stamps_of_a_filter(
    kafka: str,
    fresh_topic: Callable[..., str],
    write: Callable[..., None],
    encode: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = fresh_topic("filter.me")
    write(kafka, topic, [encode(number) for number in range(3)])
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    shown: list[Any] = []
    names: dict[str, Any] = {"display": shown.append}
    for text in code():
        exec(text.replace("filter.me.bright", topic), names)  # noqa: S102  (it is our own notebook)
    assert [alert._repr_html_().count("data:image/png") for alert in shown] == [1, 1, 1]
