"""The proof that in = out: classes that add up, and ranges of offsets that join."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from nightwire.core.accounting.accounts import Account, totals

NOT_A_TOPIC = ("visit/", "vtp-")
"""Beginnings of the sources that have no offsets, so no ranges to join."""


def discrepancies(accounts: Iterable[Account]) -> list[str]:
    """Say, in plain words, where *accounts* do not prove that in = out; empty when they do.

    Looked for: classes that do not add up to the records read, and ranges of one source that
    overlap or leave offsets out.
    """
    known = list(accounts)
    return [*_unclassified(known), *_unjoined(known)]


def _unclassified(accounts: Iterable[Account]) -> Iterable[str]:
    for account in accounts:
        for total in totals([account]):
            if total.missing:
                where = f"{account.source}[{account.partition}] from {account.first}"
                yield f"{total.stage}: {total.missing} of {total.read} in no class, {where}"


def _unjoined(accounts: Iterable[Account]) -> Iterable[str]:
    by_source: dict[tuple[str, str, int], list[Account]] = defaultdict(list)
    for account in accounts:
        if not account.source.startswith(NOT_A_TOPIC):
            by_source[account.stage, account.source, account.partition].append(account)
    for (stage, source, partition), ranges in by_source.items():
        for left, right in pairwise(sorted(ranges, key=lambda account: account.first)):
            if right.first != left.last + 1:
                yield f"{stage}: {source}[{partition}] {_joint(left, right)}"


def _joint(left: Account, right: Account) -> str:
    if right.first <= left.last:
        return f"counts offsets {right.first} to {left.last} twice"
    return f"leaves out offsets {left.last + 1} to {right.first - 1}"
