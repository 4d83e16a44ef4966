"""Delivery of decisions: copies, transforms and overflow, at least once."""
