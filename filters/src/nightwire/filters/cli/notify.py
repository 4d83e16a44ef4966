"""A filter that tells a web page, or a person, what passed: a flow of two stones in `flows`."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from nightwire.core.kafka import admin, asks_for_passwords
from nightwire.core.outside import MAIL_ADDRESS, Refused, Unavailable, may_be_mailed, pin_url
from nightwire.core.presence import NobodyAnswersError, SiteHttpError, ask_directory, home_of
from nightwire.core.runtime import Endpoints
from nightwire.core.subscriptions import write_flow
from nightwire.filters.language import FilterError
from nightwire.schemas.topics import NAME

SCHEMES = ("https://", "http://", "mailto:")
WORKERS = (
    "SELECT site, capabilities FROM processes WHERE name LIKE 'flows %' AND state <> 'gone' "
    "AND CASE WHEN json_valid(capabilities) THEN json_type(capabilities) END = 'object'"
)
"""Asks the directory what the workers that run flows say of themselves."""


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


def doubt(where: Endpoints, url: str) -> str:
    """Return why perhaps nothing is sent to *url*, by what flows' workers say of themselves.

    It is empty where one of them would send, as far as it can be told from here.
    """
    try:
        workers = _workers(where)
    except (NobodyAnswersError, SiteHttpError, json.JSONDecodeError) as error:
        return f"whether a worker sends there is not known: {error}"
    if not workers:
        return "no worker runs flows just now: it begins with one (`nightwire flow serve`)"
    scheme, _, person = url.partition(":")
    if scheme == "mailto":
        return mail_doubt(person, workers) if asks_for_passwords(where.kafka) else ""
    try:
        pin_url(url, allow_private=any(one.get("inside", True) for one in workers))
    except Refused:  # what its address is, is not told: it may be another network's than the owner's
        return "the workers refuse it: no http or https URL without a password, or an address inside"
    except Unavailable:
        return "its host has no address just now: it is tried again, for a day"
    return ""


def _workers(where: Endpoints) -> list[dict[str, Any]]:
    """Return what the workers of this site that run flows say of themselves."""
    answer = ask_directory(where, "POST", "/query", json={"sql": WORKERS})
    rows = (one for one in answer.json() if one["site"] == home_of(answer))
    return [json.loads(one["capabilities"]) for one in rows]


def mail_doubt(person: str, workers: Iterable[Mapping[str, Any]]) -> str:
    """Return why *person* is perhaps not mailed; an operator, who mails anybody, is told so too."""
    told = [one["mail"] for one in workers if isinstance(one.get("mail"), list)]
    domains = ", ".join(sorted({str(name) for one in told for name in one}))
    if not told or may_be_mailed(person, domains):
        return ""
    return (
        f"the workers mail for owners to {domains or 'no domain'}, and to single addresses where the "
        "operator names them (NIGHTWIRE_FLOW_MAIL_TO): unless this is one, nothing is sent"
    )


def check_url(url: str) -> None:
    """Do nothing where events can be posted to *url*.

    Raises:
        FilterError: They cannot.
    """
    if not url.startswith(SCHEMES):
        raise FilterError(f"--notify: {url[:80]!r} begins with none of {', '.join(SCHEMES)}")
    scheme, _, rest = url.partition(":")
    is_mail = all(MAIL_ADDRESS.fullmatch(one.strip()) for one in rest.split(","))
    if (scheme == "mailto" and not is_mail) or not url.isprintable():
        raise FilterError(f"--notify: {url[:80]!r} is no address that can be posted or mailed to")


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
