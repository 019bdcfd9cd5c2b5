"""Vision transformers: model, objectives and pictures. Parts that decoders share are with the decoders."""
