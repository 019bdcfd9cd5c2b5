"""Calls of trainmaster's API: where it is, signed requests, and what kind of answer came."""
