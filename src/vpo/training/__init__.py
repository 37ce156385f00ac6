"""Training runs: settings, run folders, training and resuming, every method side by side."""
