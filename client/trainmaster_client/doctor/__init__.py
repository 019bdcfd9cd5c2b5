"""What ``trainmaster doctor`` looks at, from the configuration to the account, and what it makes of it."""
