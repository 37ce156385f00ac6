"""Runs programs that nobody trusts."""
