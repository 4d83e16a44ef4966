"""Certificates of a site: its authority, and what that signs; see docs/user/tls.md."""
