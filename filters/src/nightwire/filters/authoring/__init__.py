"""The owner's side: the submitted source of a notebook, trying it on a sample, asking the engine."""
