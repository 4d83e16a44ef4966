"""The scenario `typed`: EVPath's measurements, typed against raw bandwidth, and what its filters cost."""

__all__: list[str] = []
