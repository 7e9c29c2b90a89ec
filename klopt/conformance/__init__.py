"""What every backend and problem must pass, reference instances, the scaffold of new ones."""
