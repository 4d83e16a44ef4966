"""Decisions on a batch: quotas, accounts, notices, backfills; and the state on disk."""
