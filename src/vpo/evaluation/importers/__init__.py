"""Importers: what other packages wrote, read as answers of a pool. One short module a format, and a dict of them."""
