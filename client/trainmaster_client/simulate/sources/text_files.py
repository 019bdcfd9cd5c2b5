"""Text files of a history, plain or compressed by gzip."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from trainmaster_client.errors import InvalidArgumentError

_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def text_of(path: Path) -> Iterator[TextIO]:
    """Open a file's lines, without a byte order mark. Raises InvalidArgumentError if it cannot be read."""
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        opener = gzip.open if is_gzip else open
        with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
            yield lines
    except OSError as error:
        raise InvalidArgumentError(
            f"{path} cannot be read: {error.strerror or error}.", hint="Give a file that you can read."
        ) from error
    except (EOFError, zlib.error) as error:
        raise InvalidArgumentError(
            f"{path} is cut off or damaged: {error}.", hint="Write or copy it again."
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{path} is not text in UTF-8: byte {error.start} of what was read.", hint="Save it as UTF-8."
        ) from error
