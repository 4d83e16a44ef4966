"""The scenario `messages`: Tycho's latency and bandwidth by message size, over Kafka."""
