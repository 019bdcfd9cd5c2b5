"""Text from elsewhere, made safe for a terminal line: no control characters, no line breaks."""


def printable(value: object) -> str:
    """Empty for None. A failure reason is a user's own output: an escape sequence in it must not act."""
    text = "" if value is None else str(value)
    return "".join(char if char.isprintable() else " " for char in text)
