"""The names that a filter's source mentions, and the fields that a survey's schemas have."""
