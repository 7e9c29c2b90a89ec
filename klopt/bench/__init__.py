"""Many isolated runs: tasks, child processes, the store, the scores, the report."""
