"""The files that `klopt new` fills in."""
