"""Files that hold a key or a token: for this user alone, whole or not at all."""

import os
import secrets
from pathlib import Path
from typing import IO

_OWNER_ONLY = 0o600


def write_private(file: Path, text: str) -> None:
    """Replace a file by this text and a line end, readable by its owner alone; raises OSError.

    The draft is a new file of this process: in a folder that others may write to, one that was put there
    before, or a link, is never opened.
    """
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "w") as opened:
            opened.write(text + "\n")
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append_private(file: Path) -> IO[str]:
    """Open a file to append lines to; one that did not exist is made for its owner alone. Raises OSError.

    One that was there keeps its mode: the user may have opened it to others.
    """
    return os.fdopen(
        os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWNER_ONLY), "a", encoding="utf-8"
    )
