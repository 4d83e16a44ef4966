"""Other sites: their logs, read beside our own."""

from nightwire.directory.sites.address import SiteAddress, SiteAddressError
from nightwire.directory.sites.discovery import MAX_SITES, SiteDiscovery
from nightwire.directory.sites.identity import ClusterIdentity, SiteRefusedError, check_claim

__all__ = [
    "MAX_SITES",
    "ClusterIdentity",
    "SiteAddress",
    "SiteAddressError",
    "SiteDiscovery",
    "SiteRefusedError",
    "check_claim",
]
