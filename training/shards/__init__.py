"""Token shards as files: their index, and how they are made. No torch here: they are made on laptops."""
