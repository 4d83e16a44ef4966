"""The verbs `nightwire simulate` and `nightwire replay`."""
