"""Paths into a document, as errors name the field that is wrong."""

from trainmaster.core.errors import MOST_QUOTED, quoted

Path = tuple[str | int, ...]
"""Keys and indexes from the top of the body; empty: the body itself."""


def path_text(path: Path) -> str:
    """Render a path like ``ResourceConfig.InstanceGroups[0]``; keys with special characters are quoted."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _is_word(step):
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]"
    return text or "body"


def _is_word(key: str) -> bool:
    plain = key.replace("_", "").replace("-", "")
    return len(key) <= MOST_QUOTED and plain.isascii() and plain.isalnum()
