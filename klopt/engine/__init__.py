"""What happens in `klopt.solve`: registry, plan, presolve, run of a backend, certified result."""
