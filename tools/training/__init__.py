"""Makes what the training program reads, and judges what it would need or has left; no job imports it."""
