"""Sockets: who may connect, how many, TLS, and the listening addresses."""
