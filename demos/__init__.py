"""Programs about the product: stories that are told and checked on the twin, or on an emulator."""
