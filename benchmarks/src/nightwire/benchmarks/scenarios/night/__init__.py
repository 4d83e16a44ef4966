"""The scenario `night`: how soon a filter's owner has an alert, from its writing and from the shutter."""

__all__: list[str] = []
