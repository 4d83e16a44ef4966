"""Workers that send, read and ask for alerts in Kafka, and what they move."""
