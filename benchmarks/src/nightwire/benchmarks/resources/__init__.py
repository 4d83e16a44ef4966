"""What processes take of the machine, in a run and over time."""
