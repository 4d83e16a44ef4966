"""What is said of filters, to Comet and to a peer that reads it."""

from collections.abc import Callable
from typing import Any

import pytest

from nightwire.gateway import Author, Submission, Transport
from nightwire.gateway.net.addresses import Address
from nightwire.gateway.xpath.filters import OFFER
from tests._voevents import packet
from tests._waiting import until

pytestmark = [pytest.mark.comet, pytest.mark.kafka]

BAD = "//*[//*[//*]]"
REASON = "it may cost"


def test_a_filter_that_is_refused_is_answered_and_comet_goes_on(
    start_gateway: Callable[..., Any],
    comet: Callable[..., Any],
    telescope: Callable[..., Any],
    ivorns: Callable[[int], list[str]],
    tmp_path: Any,
) -> None:
    gateway = start_gateway("--iamalive", "1")
    inbox, log = tmp_path / "inbox", tmp_path / "comet.log"
    comet(
        *(f"--remote=127.0.0.1:{gateway.subscribers}", f"--filter={BAD}"),
        *("--filter=/*[@role='prediction']", "--save-event", f"--save-event-directory={inbox}"),
    )
    until(lambda: "(role=nak)" in log.read_text(), "Comet to note the refusal")
    mine = telescope(gateway.subscribers, filters=("//[", "/*[@role='prediction']", BAD))
    until(lambda: any(one.role == "nak" for one in mine.heard), "the refusal")
    (refusal,) = [one for one in mine.heard if one.role == "nak"]
    assert refusal.params == (("xpath-filter-refused", "//["), ("xpath-filter-refused", BAD))
    assert "not an XPath expression" in (refusal.result or "")
    assert f"filter {BAD}: {REASON}" in (refusal.result or "")
    until(lambda: any(one.role == "iamalive" for one in mine.heard), "an iamalive")
    assert {one.params for one in mine.heard if one.role == "iamalive"} == {OFFER}

    old_wording = Transport("authenticationresponse", "ivo://b", params=(("xpath-filter", "true()"),))
    everything = telescope(gateway.subscribers, filters=("false()",))
    everything.tell(old_wording)  # replaces the filter
    until(lambda: gateway.log.read_text().count("filters by") >= 4, "all filters")
    author = Author(Address("127.0.0.1", gateway.authors))
    names = ivorns(4)
    sent = [
        packet(ivorn, role=role) for ivorn, role in zip(names, ("observation", "prediction") * 2, strict=True)
    ]
    for document in sent:
        assert author.send(Submission("x", document)).verdict == "ack"
    assert sorted(everything.wait_for(4)) == sorted(sent)
    assert sorted(mine.wait_for(2)) == sorted(sent[1::2])
    until(lambda: len(list(inbox.iterdir() if inbox.exists() else ())) == 2, "Comet to save two")
    assert sorted(file.read_bytes() for file in inbox.iterdir()) == sorted(sent[1::2])
    assert log.read_text().count("Connection to") == 0  # it never lost the connection
    assert gateway.stop() == 0
