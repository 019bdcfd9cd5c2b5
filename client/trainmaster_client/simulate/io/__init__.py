"""What a simulation does outside: processes, the clock, the account, and the report."""
