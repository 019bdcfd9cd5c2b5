"""The dashboard: pages of the gateway for its user's browser, and the data that they read on this machine."""
