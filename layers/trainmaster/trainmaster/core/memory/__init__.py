"""The memory that a training needs on each rank."""
