"""A filter that tells a web page, or a person, what passed: a flow of two stones in `flows`."""

import json
from hashlib import sha256

from nightwire.core.kafka import admin
from nightwire.core.subscriptions import write_flow
from nightwire.filters.language import FilterError
from nightwire.schemas.topics import NAME

SCHEMES = ("https://", "http://", "mailto:")


def notify_owner(bootstrap: str, owner: str, name: str, topic: str, url: str) -> str:
    """Let what comes in *topic* be posted or mailed to *url*; return the name of the flow.

    Args:
        bootstrap: Kafka's address.
        owner: The filter's.
        name: The filter's.
        topic: Where its alerts go.
        url: Where they are posted.
    """
    begin = "end" if topic in admin(bootstrap).list_topics(timeout=10).topics else "start"
    flow = flow_name(owner, name)
    write_flow(bootstrap, flow, flow_text(flow, topic, begin, url))
    return flow


def check_url(url: str) -> None:
    """Do nothing where events can be posted to *url*.

    Raises:
        FilterError: They cannot.
    """
    if not url.startswith(SCHEMES):
        raise FilterError(f"--notify: {url[:80]!r} begins with none of {', '.join(SCHEMES)}")


def flow_name(owner: str, name: str) -> str:
    """Return the name of the flow of a filter: its own, or as much of it as fits, and a digest."""
    whole = f"{owner}-{name}"
    short = f"{whole[:27]}-{sha256(f'{owner}/{name}'.encode()).hexdigest()[:8]}"
    return whole if NAME.fullmatch(whole) else short


def flow_text(flow: str, topic: str, begin: str, url: str) -> str:
    """Return a flow that sends on what comes in *topic*, as TOML; JSON's texts are TOML's too."""
    source = f"[sources.passed]\ntopic = {json.dumps(topic)}\nbegin = {json.dumps(begin)}\n"
    scheme, _, person = url.partition(":")
    how = (
        f'"email"\nto = {json.dumps(person)}' if scheme == "mailto" else f'"webhook"\nurl = {json.dumps(url)}'
    )
    return f'name = {json.dumps(flow)}\n{source}[stones.hook]\nfrom = "passed"\nkind = {how}\n'
