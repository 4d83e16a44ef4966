"""OpenPGP signatures of events: made, verified, and of whom they are required."""

from nightwire.gateway.signing.bundled_signatures import bundle, bundled_signatures
from nightwire.gateway.signing.keyring import Keyring
from nightwire.gateway.signing.verification import Finding, check_signature

__all__ = ["Finding", "Keyring", "bundle", "bundled_signatures", "check_signature"]
