"""`python -m klopt`: the `klopt` command where it is not on the path."""

from __future__ import annotations

from klopt.cli.main import main

if __name__ == "__main__":
    main(prog_name="klopt")
