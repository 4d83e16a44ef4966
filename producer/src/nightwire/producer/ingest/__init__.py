"""A survey's own Kafka is mirrored into ``alerts.<survey>``, exactly once and unchanged."""
