"""What the files of native libraries share: options, rows as bounds, models, status of an embedding."""
