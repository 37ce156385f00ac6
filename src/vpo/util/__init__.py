"""What every package uses: errors, files, rows, progress, processes, endpoints."""
