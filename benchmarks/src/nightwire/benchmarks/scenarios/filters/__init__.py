"""The scenario `filters`: a hundred and a thousand astronomers' filters on one visit."""

__all__: list[str] = []
