"""The scenario `faults`: what is killed with -9 under load comes back, and nothing is lost."""
