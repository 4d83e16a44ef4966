"""Running scenarios: options, resources, pairs, checkpoints, results, one limit of time for all."""
