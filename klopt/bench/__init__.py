"""Many isolated runs: the tasks, the child processes that run them, the store, the scores, the report."""
