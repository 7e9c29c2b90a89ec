"""What plug-in authors speak of: problems, backends, forms, functions, cones and sets."""
