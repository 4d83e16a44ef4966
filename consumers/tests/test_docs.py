"""What the documents show of reading runs as it is written."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nightwire.consumers import AlertReader

ROOT = Path(__file__).parents[2]
PAGES = ("consumers/README.md", "docs/user/community-broker.md", "docs/user/astronomer.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOPIC = re.compile(r"\b(?:alerts\.(?:lsst|sim)|filter\.me\.\w+)\b")
GROUP = re.compile(r'group="[^"]*"')


def examples() -> list[tuple[str, str]]:
    """Return the examples that read alerts, with the page of each."""
    found = [(page, text) for page in PAGES for text in BLOCK.findall((ROOT / page).read_text())]
    return [(page, text) for page, text in found if "AlertReader(" in text]


def test_each_page_has_examples() -> None:
    assert {page for page, _ in examples()} == set(PAGES)


@pytest.mark.kafka
@pytest.mark.parametrize(("page", "text"), examples())
def test_an_example_runs(
    page: str,
    text: str,
    kafka: str,
    fresh_topic: Callable[..., str],
    encode: Callable[..., bytes],
    write: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, handed = fresh_topic("filter.me"), []
    write(
        kafka, topic, [encode(number) for number in range(3)], headers=[("survey", b"sim"), ("version", b"1")]
    )
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    made = AlertReader.__init__

    def ends(self: AlertReader, *args: Any, **how: Any) -> None:
        made(self, *args, **{**how, "follow": False})  # the examples read for ever

    monkeypatch.setattr(AlertReader, "__init__", ends)
    takers = dict.fromkeys(("store", "store_all", "index"), lambda *what: handed.append(what))
    names: dict[str, Any] = {"keep": lambda alert: handed.append(alert), "display": print, **takers}
    own = GROUP.sub(f'group="{os.urandom(4).hex()}"', TOPIC.sub(topic, text))
    exec(compile(own, page, "exec"), names)  # noqa: S102  (they are our own pages)
    assert handed or len(names.get("night", ())) == 3 or "print(" in text
