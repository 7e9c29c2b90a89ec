"""What every backend and every problem must pass, reference instances, and the scaffold of new ones."""
