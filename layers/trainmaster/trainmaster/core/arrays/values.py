"""What the tasks of an array have beside its row: the request and each task's hyperparameters, one item."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRequest:
    """The request of an array, and what differs from task to task."""

    body: Mapping[str, Any]
    columns: Mapping[str, Sequence[str | None]]
    """By hyperparameter, the value of each task in the order of positions; None where the task has none."""

    def values(self, position: int) -> dict[str, str]:
        """Return the hyperparameters of one task that differ from the request's."""
        chosen = ((name, column[position]) for name, column in self.columns.items())
        return {name: value for name, value in chosen if value is not None}

    def of(self, positions: Iterable[int]) -> "ArrayRequest":
        """Return the request for some of the tasks, in the order of their positions."""
        chosen = list(positions)
        columns = {name: [column[position] for position in chosen] for name, column in self.columns.items()}
        return ArrayRequest(body=self.body, columns=columns)

    def packed(self) -> bytes:
        """Return it as JSON, with keys in order, so that equal requests are equal bytes."""
        content = {"request": self.body, "values": self.columns}
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def array_request(body: Mapping[str, Any], rows: Sequence[Mapping[str, str]]) -> ArrayRequest:
    """Keep the values of all tasks by name: names are written once, not once a task."""
    names = dict.fromkeys(name for row in rows for name in row)
    return ArrayRequest(body=body, columns={name: [row.get(name) for row in rows] for name in names})


def unpacked_request(content: bytes) -> ArrayRequest:
    """Read what ``packed`` has written. Raises KeyError or ValueError for anything else."""
    parts = json.loads(content)
    return ArrayRequest(body=parts["request"], columns=parts["values"])
