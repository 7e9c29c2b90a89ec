"""The family of multiple kernel learning."""
