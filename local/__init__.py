"""The local twin: an embedded AWS on one port, for the whole stack."""
