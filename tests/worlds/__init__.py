"""The whole plane in the harsh world, in virtual time: real handlers and adapters, slow, throttled calls."""
