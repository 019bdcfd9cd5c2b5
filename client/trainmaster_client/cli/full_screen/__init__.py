"""``trainmaster top``: the queue, pools and a job with its log on a whole terminal."""
