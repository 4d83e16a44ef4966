"""Files of alerts, played into Kafka with their bytes unchanged."""
