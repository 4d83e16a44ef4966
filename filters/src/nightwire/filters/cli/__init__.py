"""The verbs `nightwire filter …`."""
