"""What runs inside a sandbox: this folder alone is put there, so it imports nothing but Python's own."""
