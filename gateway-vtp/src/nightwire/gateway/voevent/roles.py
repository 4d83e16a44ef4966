"""Roles of VOEvents."""

ROLES = ("observation", "prediction", "utility", "test")
"""All that the standard has; an event without one is an observation."""
ACTED_ON = ("observation", "prediction")
"""Roles that handlers act on by default: no test ever moves a telescope."""


def role_label(role: str) -> str:
    """Return *role* as the label of a metric: an event may have any text as its role."""
    return role if role in ROLES else "other"
