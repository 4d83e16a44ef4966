"""The rights that a flow needs and its owner lacks.  Pure, but for the environment."""

import os
import re
from collections.abc import Collection, Iterator

from nightwire.core.access import WRITING, ReadRights
from nightwire.core.outside import may_be_mailed
from nightwire.flows.model import Flow, FlowError, Stone
from nightwire.flows.terminals import ENV_PREFIX, VARIABLE_PREFIX
from nightwire.flows.terminals.mail import ALLOWED_RECIPIENTS
from nightwire.schemas.topics import FLOWS

OPERATOR_KINDS = frozenset({"bridge", "file"})
"""Kinds of stones that operators alone may use; so are databases at literal addresses."""
MOST_STONES = 100
"""Most stones of all flows of an owner: each terminal is a thread."""
MOST_TOPICS = 100
"""Most topics `broker.OWNER.…`: an owner's flows make no more."""


class DeniedError(FlowError):
    """The owner of a flow lacks a right that it needs."""


def missing_rights(
    flow: Flow, owner: str, rights: ReadRights, others: Collection[Flow] = ()
) -> Iterator[str]:
    """Yield the rights that *flow* needs and *owner* lacks; *others* are the owner's other flows.

    Topics `broker.OWNER.…` are the owner's.  Who may write `flows` is an operator: all stones and
    recipients are allowed.
    """
    own = f"broker.{owner}."
    denied = (topic for topic in flow.input_topics if not rights.allow(owner, topic))
    yield from (f"{owner} may not read {topic}" for topic in denied)
    for topic in flow.output_topics:
        if not topic.startswith(own) and not rights.allow(owner, topic, WRITING):
            yield f"{owner} may not write {topic}; {own}STREAM he may"
    if not rights.allow(owner, FLOWS, WRITING):
        if sum(len(one.stones) for one in (flow, *others)) > MOST_STONES:
            yield f"the flows of {owner} have more than {MOST_STONES} stones"
        for stone in filter(_is_for_operators, flow.stones.values()):
            yield f"{owner} may have no {stone.kind} (stone {stone.name}): let the operator run that flow"
        yield from _foreign_variables(flow, owner)
        yield from _foreign_addresses(flow, owner, os.environ.get(ALLOWED_RECIPIENTS, ""))


def _is_for_operators(stone: Stone) -> bool:
    """Whether *stone* leads to a Kafka or to files without a check of their address."""
    database = str(stone.options.get("database", ENV_PREFIX))
    return stone.kind in OPERATOR_KINDS or not database.startswith(ENV_PREFIX)


def _foreign_variables(flow: Flow, owner: str) -> Iterator[str]:
    """Yield the worker's variables in *flow* that are not *owner*'s."""
    own = f"{VARIABLE_PREFIX}{owner.upper().replace('-', '_')}__"
    for stone in flow.stones.values():
        for name, value in stone.options.items():
            if not isinstance(value, str) or not value.startswith(ENV_PREFIX):
                continue
            if re.fullmatch(own + r"[A-Z0-9]+(_[A-Z0-9]+)*", value.removeprefix(ENV_PREFIX)) is None:
                line = stone.lines.get(name, stone.lines.get("", 1))
                yield f"line {line}: {owner} may not use {value[:80]}; {ENV_PREFIX}{own}NAME he may"


def _foreign_addresses(flow: Flow, owner: str, allowed: str) -> Iterator[str]:
    """Yield the recipients of *flow* that are not *allowed*."""
    for stone in flow.stones.values():
        to = stone.options["to"] if stone.kind == "email" else ()
        for one in [to] if isinstance(to, str) else to:
            if not may_be_mailed(one, allowed):
                yield (
                    f"line {stone.lines.get('to', 1)}: {owner} may not mail {one[:80]}; he may: "
                    f"{allowed or 'nobody'} (the operator names domains in {ALLOWED_RECIPIENTS})"
                )


def check_topics(owner: str, topics: Collection[str]) -> None:
    """Check that *topics*, with those that a flow would make, hold no more of *owner* than allowed.

    Raises:
        FlowError: There would be too many.
    """
    if sum(one.startswith(f"broker.{owner}.") for one in topics) > MOST_TOPICS:
        advice = "ask the operator for `nightwire flow down NAME --purge` of a flow that ended"
        raise FlowError([f"more than {MOST_TOPICS} topics broker.{owner}.…: {advice}"])
