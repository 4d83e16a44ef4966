"""The other side of the broker: sending events as an author, and asking whether it is alive."""
