"""What filters, offsets, workers' messages, chains and transforms are.  Pure."""
