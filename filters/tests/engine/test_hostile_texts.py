"""Texts that once stopped every batch, live beside a good filter: its alerts are complete."""

from collections.abc import Callable
from typing import Any

import pytest

from nightwire.core.accounting import discrepancies, read_accounts
from nightwire.filters.authoring.client import send_request

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KEEP = "def keep(alert):\n    return alert.flux > 500\n"
CALLS = " and ".join(f"h{{0}}(x + {number})" for number in range(40))
HELPERS = "".join(f"def h{n}(x):\n    return {CALLS.format(n + 1)}\n" for n in range(3))
CODE = "def keep(alert):\n    class Cut:\n        least = 500\n    return alert.flux > Cut.least\n"

TEXTS = {
    "hex": f"X = 0x{'f' * 5_000}\n{KEEP}",
    "hex-code": f"X = 0x{'f' * 5_000}\n{CODE}",
    "ones": f"def never():\n    return {'+'.join('1' * 2_924)}\n{KEEP}",
    "ones-code": f"def never():\n    return {'+'.join('1' * 900)}\n{CODE}",
    "helpers": f"{HELPERS}def h3(x):\n    return x > 1 and x < 1e9\n"
    "def keep(alert):\n    return [alert.flux][0] > 500 and h0(alert.flux)\n",
    "ids": f"def keep(alert):\n    return alert.id in {[*range(51, 3_051)]}\n",
}
"""Who is accepted of them passes what is brighter than 500 nJy: the upper half."""


def test_texts_that_stopped_every_batch_stop_none(
    site: Any, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    site.start("--light")
    about: dict[str, Any] = {"entry": "keep", "survey": "sim", "cap": 0}
    answers = {
        name: send_request(site.bootstrap, "submit", "me", name, source=text, **about)
        for name, text in {**TEXTS, "good": KEEP}.items()
    }
    live = [name for name, answer in answers.items() if answer["accepted"]]
    assert {"good", "hex", "hex-code", "ids", "helpers"} <= set(live), answers
    site.write("alerts.sim", [encode(number, 10.0 * number) for number in range(1, 101)])
    for name in live:
        until(
            lambda name=name: len(site.read(f"filter.me.{name}")) == 50,
            60,
            lambda: site.log.read_text()[-3000:],
        )
    assert "Traceback" not in site.log.read_text()
    until(lambda: discrepancies(read_accounts(site.bootstrap)) == [], 20)
    assert site.stop() == 0
