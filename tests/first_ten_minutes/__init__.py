"""What a stranger's beginning costs: from an empty folder to the first ``fit()`` that the queue has seen."""
