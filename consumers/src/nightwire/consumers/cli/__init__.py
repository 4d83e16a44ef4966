"""The verbs `nightwire subscribe`, `topics`, `offsets`, `dead-letters` and `returns`."""
