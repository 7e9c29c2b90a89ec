"""What happens in `klopt.solve`: registry, plan, presolve, the run of a backend, its certified result."""
