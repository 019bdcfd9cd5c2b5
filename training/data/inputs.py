"""What shards are made from as a stream: texts as bytes, or files of token ids that a tokenizer made."""

import codecs
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from training.data.index import TokenDtype
from training.data.writer import Part
from training.errors import ConfigError, DataError

if TYPE_CHECKING:
    from numpy import integer
    from numpy.typing import NDArray

END_OF_DOCUMENT = 255
"""No text in UTF-8 has this byte, so bytes and the end of a document fit a vocabulary of 256."""
BYTE_VOCABULARY = 256
_READ_BYTES = 2**20
_READ_TOKENS = 2**20


class TokenSource(Protocol):
    """Files as one stream of tokens."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def documents(self) -> bool:
        """It says where they begin."""

    def tokens(self) -> int:
        """How many there are."""

    def stream(self) -> Iterator[Part]:
        """They themselves, in the smallest type that holds them.

        Raises:
            DataError: A file cannot be read or is not what it should be.
        """


def files_under(inputs: Sequence[Path]) -> list[Path]:
    """Files as given; of directories all files below, in the order of their names, without hidden ones."""
    found: list[Path] = []
    for one in inputs:
        if one.is_dir():
            found += sorted(path for path in one.rglob("*") if path.is_file() and not _hidden(path, one))
        elif one.is_file():
            found.append(one)
        else:
            raise DataError(place=str(one), problem="it is not there", remedy="check --input")
    if not found:
        raise DataError(place=str(inputs[0]), problem="it has no files", remedy="check --input")
    return found


def _hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)


class Texts:
    """Each byte is a token; each file is a document."""

    vocabulary = BYTE_VOCABULARY
    documents = True

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files

    def tokens(self) -> int:
        return sum(path.stat().st_size + 1 for path in self._files)

    def stream(self) -> Iterator[Part]:
        for path in self._files:
            check, begins = codecs.getincrementaldecoder("utf-8")(), True
            with path.open("rb") as file:
                while part := file.read(_READ_BYTES):
                    _check_text(check, part, path)
                    yield Part(tokens=_widened(part), begins=begins)
                    begins = False
            _check_text(check, b"", path)
            yield Part(tokens=_widened(bytes([END_OF_DOCUMENT])), begins=begins)


def _check_text(check: codecs.IncrementalDecoder, part: bytes, path: Path) -> None:
    try:
        check.decode(part, final=not part)
    except UnicodeDecodeError as error:
        raise DataError(
            place=str(path),
            problem=f"it is not text in UTF-8 ({error.reason})",
            remedy="convert it, leave it out, or give token ids with --tokens",
        ) from error


def _widened(part: bytes) -> bytes:
    """Each byte as uint16."""
    wide = bytearray(2 * len(part))
    wide[::2] = part
    return bytes(wide)


class TokenFiles:
    """Token ids: `.npy` of one dimension, any other file raw and little-endian."""

    documents = False

    def __init__(self, files: Sequence[Path], *, raw_dtype: TokenDtype, vocabulary: int) -> None:
        if find_spec("numpy") is None:
            raise ConfigError(["--tokens needs numpy: pip install numpy"])
        self._files, self._raw_dtype, self.vocabulary = files, raw_dtype, vocabulary
        self._width = TokenDtype.of(vocabulary).bytes

    def tokens(self) -> int:
        return sum(len(self._opened(path)) for path in self._files)

    def stream(self) -> Iterator[Part]:
        for path in self._files:
            tokens = self._opened(path)
            for start in range(0, len(tokens), _READ_TOKENS):
                part = tokens[start : start + _READ_TOKENS]
                self._check(part, start, path)
                yield Part(tokens=part.astype(f"<u{self._width}").tobytes())

    def _opened(self, path: Path) -> "NDArray[integer]":
        import numpy as np  # noqa: PLC0415  texts do without it

        tokens: NDArray[integer]
        try:
            if path.suffix == ".npy":
                tokens = np.load(path, mmap_mode="r")
            else:
                tokens = np.memmap(path, dtype=f"<u{self._raw_dtype.bytes}", mode="r")
        except (OSError, ValueError) as error:
            raise self._unusable(path, str(error)) from error
        if tokens.ndim != 1 or not np.issubdtype(tokens.dtype, np.integer):
            raise self._unusable(path, f"it holds {tokens.dtype} of {tokens.ndim} dimensions")
        return tokens

    def _check(self, part: "NDArray[integer]", start: int, path: Path) -> None:
        if part.min() < 0 or part.max() >= self.vocabulary:
            first = int(((part < 0) | (part >= self.vocabulary)).argmax())
            problem = f"token {part[first]} at place {start + first} is outside a vocabulary of"
            raise self._unusable(path, f"{problem} {self.vocabulary}")

    def _unusable(self, path: Path, problem: str) -> DataError:
        return DataError(
            place=str(path),
            problem=problem,
            remedy="give token ids as .npy of one dimension or as raw "
            f"{self._raw_dtype}, and the --vocabulary of their tokenizer",
        )
