"""Stamps for the eye: small ones in rows, large ones with scale and north, a finder chart."""

from nightwire.portal.pictures.finder import Target, finder_pdf
from nightwire.portal.pictures.sky import Orientation, orientation
from nightwire.portal.pictures.stamps import STRETCHES, in_order, picture, strip

__all__ = ["STRETCHES", "Orientation", "Target", "finder_pdf", "in_order", "orientation", "picture", "strip"]
