"""Replays of what a twin really did: whether the simulator starts jobs when the scheduler started them."""
