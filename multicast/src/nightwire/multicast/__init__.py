"""A LAN gets a channel once: a relay sends a topic's alerts by multicast."""
