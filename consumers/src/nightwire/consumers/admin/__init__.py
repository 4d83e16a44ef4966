"""What operators look at and move: topics, positions of groups, dead letters."""
