"""Model families, as plain modules that know nothing of parallelism."""
