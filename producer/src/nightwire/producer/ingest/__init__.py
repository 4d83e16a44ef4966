"""Mirror a survey's own Kafka into ``alerts.<survey>``: nothing lost, nothing twice, nothing changed."""
