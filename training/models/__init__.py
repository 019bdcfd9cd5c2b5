"""What is trained, and by what: shapes, families, first weights, losses, adapters, float8, optimizers."""
