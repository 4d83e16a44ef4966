"""The stack's Kafka: its jars, its storage, the broker, and how it authenticates clients."""
