"""Programs at a desk, which no job and no service imports."""
