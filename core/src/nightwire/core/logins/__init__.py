"""Users help themselves: they take up an invitation, change their password, and get tokens."""
