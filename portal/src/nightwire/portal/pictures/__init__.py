"""Pictures of stamps: strips in rows, large ones with scale and north, finder charts."""

from nightwire.portal.pictures.finder import Target, finder_pdf
from nightwire.portal.pictures.orientation import orientation
from nightwire.portal.pictures.stamps import STRETCHES, in_order, stamp_png, strip

__all__ = ["STRETCHES", "Target", "finder_pdf", "in_order", "orientation", "stamp_png", "strip"]
