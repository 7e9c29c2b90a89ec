"""Many isolated runs: what is to be run, the children that run it, the store that keeps it, and what it all says."""
