"""The scenario `visit`: what one visit costs, from the pipeline's dictionary to a filter's owner."""
