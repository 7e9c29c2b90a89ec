"""The `klopt` command, one file per group of subcommands."""
