"""The twin's answers about the account around the stack: its network, limits and Studio domains."""
