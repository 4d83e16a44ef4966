"""What scenarios run against: machine, processes, Kafka, filter engine, VTP brokers, alerts."""
