"""Replays of one history beside each other: worked out from their attempts alone."""
