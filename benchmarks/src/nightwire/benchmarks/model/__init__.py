"""What a scenario is, what a run of it measured, and the statistics of runs; imports no other sub-package."""
