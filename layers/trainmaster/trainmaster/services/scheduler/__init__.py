"""Passes over a pool: what `plan` decided, carried out."""
