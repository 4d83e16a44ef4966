"""Alerts on disk while Kafka is away, and the writer that sends them when it is back."""
