"""The outside of a simulation: processes, the clock, the account, and the report."""
