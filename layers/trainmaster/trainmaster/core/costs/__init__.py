"""Prices, the ledger, and the record of spot instances."""
