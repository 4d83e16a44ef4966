"""What the documents show of reading runs as it is written."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("consumers/README.md", "docs/user/community-broker.md", "docs/user/astronomer.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOPIC = re.compile(r"\b(?:alerts\.(?:lsst|sim)|filter\.me\.\w+)\b")
CALL = re.compile(r"AlertReader\([^()]*\)")
GROUP = re.compile(r'group="[^"]*"')


def ended(call: str) -> str:
    """Return *call* as a reader that ends: most examples read for ever."""
    return call if "follow=" in call else call.removesuffix(")") + ", follow=False)"


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
    topic = fresh_topic("filter.me")
    write(
        kafka, topic, [encode(number) for number in range(3)], headers=[("survey", b"sim"), ("version", b"1")]
    )
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    handed: list[Any] = []
    takers = dict.fromkeys(("store", "store_all", "index", "keep"), lambda *what: handed.append(what))
    names: dict[str, Any] = {"display": print, **takers}
    own = CALL.sub(
        lambda call: ended(call[0]), GROUP.sub(f'group="{os.urandom(4).hex()}"', TOPIC.sub(topic, text))
    )
    exec(compile(own, page, "exec"), names)  # noqa: S102  (they are our own pages)
    assert handed or len(names.get("night", ())) == 3 or "print(" in text
