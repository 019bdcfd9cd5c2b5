"""Passes over a pool: they carry out what `plan` decided."""
