"""The scheduler: what a pass knows, what it decides, how it is carried out."""
