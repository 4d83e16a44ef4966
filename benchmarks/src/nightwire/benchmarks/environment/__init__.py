"""What scenarios run against: the machine, child processes, Kafka, the filter engine, VTP brokers, alerts."""
