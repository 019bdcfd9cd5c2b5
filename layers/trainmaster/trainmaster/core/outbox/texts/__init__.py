"""The words of notices."""
