"""The papers' experiments as programs: protocols, data anyone can get by pip, runs that resume, tables with tests."""
