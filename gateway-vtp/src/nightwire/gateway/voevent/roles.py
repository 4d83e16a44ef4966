"""Roles of VOEvents."""

ROLES = ("observation", "prediction", "utility", "test")
"""All that the standard has; an event without one is an observation."""
ACTED_ON = ("observation", "prediction")
"""What feeds carry and handlers act on, unless told otherwise: no test ever moves a telescope."""


def role_label(role: str) -> str:
    """Return *role* as a metric has it: an event may say anything."""
    return role if role in ROLES else "other"
