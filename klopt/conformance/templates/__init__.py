"""The templates of the files that `klopt new` writes."""
