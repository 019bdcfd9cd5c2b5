"""What the twin says about the account around the stack: its network, its limits, its Studio domains."""
