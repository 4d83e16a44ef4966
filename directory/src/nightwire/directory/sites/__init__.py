"""Other sites: their logs, read beside our own."""

from nightwire.directory.sites.address import SiteAddress, SiteAddressError
from nightwire.directory.sites.identity import Introduction, SiteRefusedError, check_claim
from nightwire.directory.sites.neighbours import MOST, Neighbours

__all__ = [
    "MOST",
    "Introduction",
    "Neighbours",
    "SiteAddress",
    "SiteAddressError",
    "SiteRefusedError",
    "check_claim",
]
