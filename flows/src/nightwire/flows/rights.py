"""What a flow does that its owner may not, and how much of it.  Pure, but for the environment."""

import os
import re
from collections.abc import Collection, Iterator

from nightwire.core.access import WRITING, ReadRights
from nightwire.core.outside import may_be_mailed
from nightwire.flows.model import Flow, FlowError, Stone
from nightwire.flows.terminals import BEFORE, VARIABLES
from nightwire.flows.terminals.mail import ALLOWED
from nightwire.schemas.topics import FLOWS

OPERATORS = frozenset({"bridge", "file"})
"""Kinds of stones that operators alone have; a database's address is theirs to say, too."""
MOST_STONES = 100
"""Most stones of all flows of an owner: a terminal is a thread."""
MOST_TOPICS = 100
"""Most topics `broker.OWNER.…`: flows of his make no more."""


class DeniedError(FlowError):
    """Who made a flow may not read or write what it does."""


def missing_rights(
    flow: Flow, owner: str, rights: ReadRights, others: Collection[Flow] = ()
) -> Iterator[str]:
    """Yield what *flow* does that *owner* may not, whose are *others* too.  Pure.

    Topics `broker.OWNER.…` are his own.  Who may write `flows` is an operator: he may all, and mail
    anybody.
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
        for stone in filter(_operators_own, flow.stones.values()):
            yield f"{owner} may have no {stone.kind} (stone {stone.name}): let the operator run that flow"
        yield from _foreign_variables(flow, owner)
        yield from _foreign_addresses(flow, owner, os.environ.get(ALLOWED, ""))


def _operators_own(stone: Stone) -> bool:
    """Whether *stone* may lead inside, and nobody judges that: to another Kafka, or to files."""
    return stone.kind in OPERATORS or not str(stone.options.get("database", BEFORE)).startswith(BEFORE)


def _foreign_variables(flow: Flow, owner: str) -> Iterator[str]:
    """Yield the variables of the worker that *flow* names and that are not *owner*'s."""
    own = f"{VARIABLES}{owner.upper().replace('-', '_')}__"
    for stone in flow.stones.values():
        for name, value in stone.options.items():
            if not isinstance(value, str) or not value.startswith(BEFORE):
                continue
            if re.fullmatch(own + r"[A-Z0-9]+(_[A-Z0-9]+)*", value.removeprefix(BEFORE)) is None:
                line = stone.lines.get(name, stone.lines.get("", 1))
                yield f"line {line}: {owner} may not use {value[:80]}; {BEFORE}{own}NAME he may"


def _foreign_addresses(flow: Flow, owner: str, allowed: str) -> Iterator[str]:
    """Yield whom *flow* would mail by the operator's server, which is not *allowed*."""
    for stone in flow.stones.values():
        to = stone.options["to"] if stone.kind == "email" else ()
        for one in [to] if isinstance(to, str) else to:
            if not may_be_mailed(one, allowed):
                yield (
                    f"line {stone.lines.get('to', 1)}: {owner} may not mail {one[:80]}; he may: "
                    f"{allowed or 'nobody'} (the operator names domains in {ALLOWED})"
                )


def check_topics(owner: str, topics: Collection[str]) -> None:
    """Do nothing where *owner* may have *topics*, those that his flow would make among them.

    Raises:
        FlowError: There would be too many of his.
    """
    if sum(one.startswith(f"broker.{owner}.") for one in topics) > MOST_TOPICS:
        raise FlowError(
            [
                f"more than {MOST_TOPICS} topics broker.{owner}.…: ask the operator for "
                "`nightwire flow down NAME --purge` of a flow that ended"
            ]
        )
