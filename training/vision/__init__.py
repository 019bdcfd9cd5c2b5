"""Vision transformers: shapes, model, loss and pictures. What a decoder has too is where decoders are."""
