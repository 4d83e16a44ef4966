"""The page people look at: what just came in, objects, the sky; a process that reads Kafka."""
