"""The owner's side: a notebook's submitted source, a trial on a sample, requests."""
