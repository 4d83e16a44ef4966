"""What was decided is sent: copies, transforms and overflow, at least once."""
