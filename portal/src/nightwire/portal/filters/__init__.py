"""An owner's filters, asked for as he is: what `nightwire filter …` does, by the same code."""

from nightwire.portal.filters.desk import Desk, Outcome, Wish
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import Tried

__all__ = ["Desk", "Outcome", "Owner", "Tried", "Wish"]
