"""One room a family of resource types: what each may say in the template, and how the twin makes it."""
