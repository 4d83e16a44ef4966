"""Accounting."""

from nightwire.core.accounting.accounts import (
    Account,
    FilterClasses,
    Key,
    StageTotal,
    account_record,
    discrepancies,
    from_record,
    read_accounts,
    totals,
    write_account,
)
from nightwire.core.accounting.dead_letters import (
    ORIGINAL,
    send_message_to_dead_letters,
    send_to_dead_letters,
)

__all__ = [
    "ORIGINAL",
    "Account",
    "FilterClasses",
    "Key",
    "StageTotal",
    "account_record",
    "discrepancies",
    "from_record",
    "read_accounts",
    "send_message_to_dead_letters",
    "send_to_dead_letters",
    "totals",
    "write_account",
]
