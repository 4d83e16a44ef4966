"""The scenario `messages`: Tycho's measurements, latency and bandwidth by message size, over Kafka."""
