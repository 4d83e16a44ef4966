"""The scenario `flows`: what a stone costs, and a graph that changes under load."""
