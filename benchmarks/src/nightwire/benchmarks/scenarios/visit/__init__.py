"""The scenario `visit`: what one visit costs, from the pipeline's dictionary to a filter's owner.

Nothing is imported here: the second process lives in this package too, and should be light.
"""

__all__: list[str] = []
