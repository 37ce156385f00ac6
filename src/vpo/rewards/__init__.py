"""Rewards that people already have, as objectives of a vector."""
