"""Those who look at the night, beside its stream."""
