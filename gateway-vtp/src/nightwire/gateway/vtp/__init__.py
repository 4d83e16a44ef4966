"""The VOEvent Transport Protocol without sockets: frames, messages, sessions, bulk submission."""
