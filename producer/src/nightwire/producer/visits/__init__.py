"""Visits: their counts, their records in `visits`, their numbers, and closing abandoned ones."""
