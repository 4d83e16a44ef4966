"""The scenario `congestion`: a link is cut; what is delivered meanwhile, and how old it is."""
