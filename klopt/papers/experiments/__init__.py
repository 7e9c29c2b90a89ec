"""The papers' experiments: protocols, public data, resumable runs, tables with tests."""
