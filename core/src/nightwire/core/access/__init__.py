"""Who may do what in Kafka: owners of filters and community brokers, their passwords, rights and quotas."""
