"""The values of the engine: filters, offsets, workers' messages, chains, transforms.  Pure."""
