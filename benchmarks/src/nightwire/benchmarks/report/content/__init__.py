"""What the report shows: publications beside our results, resources, goals; their formatting."""
