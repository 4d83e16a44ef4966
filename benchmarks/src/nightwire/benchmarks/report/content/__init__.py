"""What the report shows: publications beside our results, resources, goals, and their formatting."""
