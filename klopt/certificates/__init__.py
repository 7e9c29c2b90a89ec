"""Certificates that travel: files that strangers check in exact arithmetic, without klopt."""
