"""Adapters to trainers that exist: each reads the declarations of a method, and names the versions it was run on."""
