"""``make demo``: four real training jobs queue, preempt, resume and finish on the local twin."""
