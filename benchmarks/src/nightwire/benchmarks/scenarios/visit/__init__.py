"""The scenario `visit`: what one visit costs, from a dictionary to a filter's owner."""
