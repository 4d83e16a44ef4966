"""Events out: feeds, and the subscribers that each event goes to."""
