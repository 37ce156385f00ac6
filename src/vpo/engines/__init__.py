"""Engines: trainers that already exist, told what to train for. Each file says which versions it was run against."""
