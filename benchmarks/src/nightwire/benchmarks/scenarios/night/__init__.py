"""The scenario `night`: delays from the writing and from the shutter to a filter's owner."""
