"""The memory that a training needs on each rank, and the bytes that the rank receives in a step."""
