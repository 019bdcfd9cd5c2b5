"""Rows of parquet files as what lines of JSON say: the same texts give the same tokens either way.

A null is a field that a line leaves out.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pyarrow import DataType, Schema
    from pyarrow.parquet import ParquetFile

PARQUET = ".parquet"
TEXT, MESSAGES = "text", "messages"
_TEXTS = (TEXT, "prompt", "response", "completion")
_MESSAGE = ("role", "content")
_MESSAGES_TYPE = "a list of structs with the texts role and content"
_ROWS = 512
"""In memory at once, decoded."""
_BUFFER_BYTES = 2**20
"""Of each column: without it, the columns of a whole row group are in memory."""
_SHOWN = 10
"""Column names in a message."""


class ParquetRows:
    """Of one file, one row group after the other."""

    def __init__(self, path: Path, *, column: str | None) -> None:
        """``column``: the one with the texts; None: columns are named as fields of JSON lines."""
        if find_spec("pyarrow") is None:
            raise ConfigError([f"{path} needs pyarrow: pip install pyarrow"])
        self._path, self._column = path, column

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Raises DataError when it is no such file, or a column is not of texts."""
        with self._opened() as file:
            names = self._columns(file.schema_arrow)
            for batch in file.iter_batches(batch_size=_ROWS, columns=names, use_threads=False):
                for row in batch.to_pylist():
                    said = {name: _without_nulls(value) for name, value in row.items() if value is not None}
                    yield {TEXT: said[self._column]} if self._column in said else said

    def sizes(self) -> Iterator[int]:
        """Bytes of the texts of each row."""
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
        """Those that are read."""
        wanted = (self._column,) if self._column else (*_TEXTS, MESSAGES)
        names = [name for name in schema.names if name in wanted]
        if not names:
            raise self._unusable(f"it has the columns {_some(schema.names)}, not {_or(wanted)}")
        for name in names:
            if names.count(name) > 1:
                raise self._unusable(f"it has column {name!r} {names.count(name)} times")
            found = schema.field(name).type
            is_messages = name == MESSAGES and not self._column
            if not (_is_messages(found) if is_messages else _is_text(found)):
                needed = (
                    "a list of structs with the texts role and content" if is_messages else "text (string)"
                )
                raise self._unusable(f"column {name!r} is {found}, and must be {needed}")
        return names

    def _unusable(self, problem: str) -> DataError:
        return DataError(
            place=str(self._path),
            problem=problem,
            remedy="name the column with the texts by --column, or rename columns to text, prompt and "
            "response, or messages",
        )


def _is_text(found: "DataType") -> bool:
    from pyarrow import types  # noqa: PLC0415  as above

    if types.is_dictionary(found):
        return _is_text(found.value_type)
    return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))


def _is_messages(found: "DataType") -> bool:
    from pyarrow import types  # noqa: PLC0415  as above

    if not (types.is_list(found) or types.is_large_list(found)) or not types.is_struct(found.value_type):
        return False
    inside = {one.name: one.type for one in found.value_type}
    return all(name in inside and _is_text(inside[name]) for name in _MESSAGE)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401  what a column holds
    """Of messages: fields that are null are left out, as in a line of JSON."""
    if not isinstance(value, list):
        return value
    return [
        one if one is None else {name: text for name, text in one.items() if text is not None}
        for one in value
    ]


def _size(row: dict[str, Any]) -> int:
    texts = [value for name, value in row.items() if name != MESSAGES]
    texts += [one.get(name, "") for one in row.get(MESSAGES, ()) if one for name in _MESSAGE]
    return sum(len(text.encode()) for text in texts)


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
