"""The scenario `multicast`: content decides where an event goes."""
