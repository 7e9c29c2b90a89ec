"""What the files of native libraries share: options, bounds, models, statuses."""
