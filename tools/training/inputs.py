"""The sources of shards: texts as bytes, token ids that a tokenizer made, and rows of parquet files.

Rows hold the same as lines of JSON: the same texts give the same tokens either way. A null is a field that a
line leaves out.
"""

import codecs
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tools.training.records import CHAT_ARGUMENTS, LISTS, MESSAGES
from tools.training.writer import Part
from training.data.index import TokenDtype
from training.errors import ConfigError, DataError, listed

if TYPE_CHECKING:
    from numpy import integer
    from numpy.typing import NDArray
    from pyarrow import DataType, Schema
    from pyarrow.parquet import ParquetFile

END_OF_DOCUMENT = 255
"""No text in UTF-8 has this byte, so bytes and the end of a document fit a vocabulary of 256."""
BYTE_VOCABULARY = 256
_READ_BYTES = 2**20
_READ_TOKENS = 2**20

PARQUET = ".parquet"
TEXT = "text"
_TEXTS = (TEXT, "prompt", "response", "completion")
_BESIDE = (*LISTS, CHAT_ARGUMENTS)
"""Columns that are read beside messages, of any type."""
_ROWS = 512
"""Rows that are decoded in memory at once."""
_BUFFER_BYTES = 2**20
"""Bytes buffered of each column; else the columns of a whole row group are in memory."""
_SHOWN = 10
"""The most column names in a message."""


class TokenSource(Protocol):
    """Files as one stream of tokens."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def documents(self) -> bool:
        """True if it knows where documents begin."""

    def tokens(self) -> int:
        """Count the tokens."""

    def stream(self) -> Iterator[Part]:
        """Yield the tokens, in the smallest type that holds them.

        Raises:
            DataError: A file cannot be read or is not what it should be.
        """


def files_under(inputs: Sequence[Path]) -> list[Path]:
    """List the files, and all files below the directories by name; hidden ones there are left out."""
    files: list[Path] = []
    for place in inputs:
        if place.is_dir():
            files += sorted(path for path in place.rglob("*") if path.is_file() and not _hidden(path, place))
        elif place.is_file():
            files.append(place)
        else:
            raise DataError(place=str(place), problem="it is not there", remedy="check --input")
    if not files:
        raise DataError(place=str(inputs[0]), problem="it has no files", remedy="check --input")
    return files


def _hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)


class Texts:
    """Text files: each byte is a token, and each file is a document."""

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
        check_no_nul(check.decode(part, final=not part), path)
    except UnicodeDecodeError as error:
        raise _no_text(path, error.reason) from error


def check_no_nul(text: str, path: Path) -> None:
    """Raise DataError for a NUL. UTF-16 of English reads as UTF-8, with a NUL beside each letter."""
    if "\0" in text:
        raise _no_text(path, "it has NULs, as binary files and UTF-16 have")


def _no_text(path: Path, reason: str) -> DataError:
    return DataError(
        place=str(path),
        problem=f"it is not text in UTF-8 ({reason})",
        remedy="convert it, leave it out, or give token ids with --tokens",
    )


def _widened(part: bytes) -> bytes:
    """Write each byte as uint16."""
    wide = bytearray(2 * len(part))
    wide[::2] = part
    return bytes(wide)


class TokenFiles:
    """Files of token ids: `.npy` of one dimension, any other file raw and little-endian."""

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


class ParquetRows:
    """The rows of one parquet file, one row group after the other."""

    def __init__(self, path: Path, *, column: str | None) -> None:
        """Read rows by the ``column`` with the texts; None if columns are named as fields of JSON lines."""
        if find_spec("pyarrow") is None:
            raise ConfigError([f"{path} needs pyarrow: pip install pyarrow"])
        self._path, self._column = path, column

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows. Raises DataError if it is no such file, or a column is not of texts."""
        with self._opened() as file:
            names = self._columns(file.schema_arrow)
            for batch in file.iter_batches(batch_size=_ROWS, columns=names, use_threads=False):
                for row in batch.to_pylist():
                    fields = {name: _without_nulls(value) for name, value in row.items() if value is not None}
                    yield {TEXT: fields[self._column]} if self._column in fields else fields

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of the texts of each row."""
        return (_size(row) for row in self)

    @contextmanager
    def _opened(self) -> "Iterator[ParquetFile]":
        from pyarrow import ArrowException  # noqa: PLC0415  other inputs do without it
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415  likewise

        try:
            with ParquetFile(self._path, buffer_size=_BUFFER_BYTES) as file:
                yield file
        except (ArrowException, OSError, UnicodeDecodeError) as error:
            remedy = "write it again; leave it out if it is no parquet file"
            raise DataError(
                place=str(self._path), problem=f"it cannot be read: {error}", remedy=remedy
            ) from error

    def _columns(self, schema: "Schema") -> list[str]:
        """Choose the columns that are read. Raises DataError if one is missing or of another type."""
        wanted = (self._column,) if self._column else (*_TEXTS, MESSAGES)
        names = [name for name in schema.names if name in wanted]
        if MESSAGES in names and not self._column:
            names += [name for name in schema.names if name in _BESIDE]
        if not names:
            raise self._unusable(f"it has the columns {listed(schema.names, most=_SHOWN)}, not {_or(wanted)}")
        for name in names:
            if names.count(name) > 1:
                raise self._unusable(f"it has column {name!r} {names.count(name)} times")
            column_type = schema.field(name).type
            is_messages = name == MESSAGES and not self._column
            if name not in _BESIDE and not (
                _is_messages(column_type) if is_messages else _is_text(column_type)
            ):
                messages = "a list of structs with the texts role and content (or a list of structs)"
                needed = messages if is_messages else "text (string)"
                raise self._unusable(f"column {name!r} is {column_type}, and must be {needed}")
        return names

    def _unusable(self, problem: str) -> DataError:
        return DataError(
            place=str(self._path),
            problem=problem,
            remedy="name the column with the texts by --column, or rename columns to text, prompt and "
            "response, or messages",
        )


def _is_text(column_type: "DataType") -> bool:
    from pyarrow import types  # noqa: PLC0415  as above

    if types.is_dictionary(column_type):
        return _is_text(column_type.value_type)
    return bool(
        types.is_string(column_type)
        or types.is_large_string(column_type)
        or types.is_string_view(column_type)
    )


def _is_messages(column_type: "DataType") -> bool:
    from pyarrow import types  # noqa: PLC0415  as above

    if not (types.is_list(column_type) or types.is_large_list(column_type)) or not types.is_struct(
        column_type.value_type
    ):
        return False
    inside = {inner.name: inner.type for inner in column_type.value_type}
    if "role" not in inside or not _is_text(inside["role"]) or "content" not in inside:
        return False
    content = inside["content"]
    is_parted = (types.is_list(content) or types.is_large_list(content)) and types.is_struct(
        content.value_type
    )
    return bool(is_parted or _is_text(content))


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  what a column holds
    """Leave out fields that are null: all structs of a column have the same fields, whether used or not."""
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


def _size(value: Any) -> int:  # noqa: ANN401  what a row holds
    """Count the bytes of all texts in a value."""
    if isinstance(value, (list, dict)):
        return sum(map(_size, value.values() if isinstance(value, dict) else value))
    return len(value.encode()) if isinstance(value, str) else 0


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
