"""Ranges of Kafka's offsets read as columns, with the fields that filters need."""
