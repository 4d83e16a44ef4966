"""The scenario `messages`: Tycho's measurements, latency and bandwidth by message size, with Kafka between.

A process is a peer: it is told what to do, again and again, so that fourteen of them start but once.
"""

__all__: list[str] = []
