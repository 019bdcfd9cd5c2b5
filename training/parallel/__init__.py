"""Divides a model among ranks, and tells whether each has room for its part."""
