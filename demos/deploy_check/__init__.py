"""``make deploy-check``: the real template, deployed by ``sam deploy`` onto MiniStack, runs real jobs."""
