"""An owner's filters, asked for as he is: what `nightwire filter …` does, by the same code."""

from nightwire.portal.filters.desk import Desk
from nightwire.portal.filters.owner import Owner
from nightwire.portal.filters.trial import Picture, Tried

__all__ = ["Desk", "Owner", "Picture", "Tried"]
