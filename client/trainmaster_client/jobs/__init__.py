"""What a client knows of jobs in the queue: views, progress, and which names belong to them."""
