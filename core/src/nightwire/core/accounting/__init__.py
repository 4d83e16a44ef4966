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
from nightwire.core.accounting.dead_letters import ORIGINAL, bury, bury_message

__all__ = [
    "ORIGINAL",
    "Account",
    "FilterClasses",
    "Key",
    "StageTotal",
    "account_record",
    "bury",
    "bury_message",
    "discrepancies",
    "from_record",
    "read_accounts",
    "totals",
    "write_account",
]
