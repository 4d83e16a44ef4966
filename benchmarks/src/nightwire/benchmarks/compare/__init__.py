"""Two results of a scenario beside each other: what became slower, what quicker."""
