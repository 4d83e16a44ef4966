"""Accounts, which prove that in = out, and dead letters."""

from nightwire.core.accounting.accounts import (
    Account,
    FilterClasses,
    Key,
    StageTotal,
    account_record,
    discrepancies,
    filters_together,
    from_record,
    lag,
    read_accounts,
    totals,
    write_account,
)
from nightwire.core.accounting.dead_letters import (
    ORIGINAL,
    send_message_to_dead_letters,
    send_to_dead_letters,
)
from nightwire.core.accounting.offset_accounts import RANGE, OffsetAccounts, extended, open_account

__all__ = [
    "ORIGINAL",
    "RANGE",
    "Account",
    "FilterClasses",
    "Key",
    "OffsetAccounts",
    "StageTotal",
    "account_record",
    "discrepancies",
    "extended",
    "filters_together",
    "from_record",
    "lag",
    "open_account",
    "read_accounts",
    "send_message_to_dead_letters",
    "send_to_dead_letters",
    "totals",
    "write_account",
]
