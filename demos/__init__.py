"""Programs about the product: stories that are played and checked on the twin, or on an emulator."""
