"""Policies as their authors write them."""
