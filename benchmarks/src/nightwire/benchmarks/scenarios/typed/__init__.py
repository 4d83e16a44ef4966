"""The scenario `typed`: EVPath's typed against raw bandwidth, and the costs of its filters."""
