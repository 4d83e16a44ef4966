"""The other processes of a run, how they are started and told what to do, and what they note."""
