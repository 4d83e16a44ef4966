"""OpenPGP signatures of events: made, verified, and of whom they are required."""

from nightwire.gateway.signing.keyring import Finding, Keyring, check_signature
from nightwire.gateway.signing.signatures import bundle, bundled_signatures

__all__ = ["Finding", "Keyring", "bundle", "bundled_signatures", "check_signature"]
