"""``trainmaster top``: the queue, pools, the timeline and a job with its log on a whole terminal."""
