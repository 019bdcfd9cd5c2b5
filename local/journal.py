"""The twin's journal: one JSON line for each call at the front door and each event of a training process."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainmaster_client.files.private_files import append_private

from local.clock import TwinClock
from local.wire import Principal

LONGEST_TEXT = 1024
"""Characters of one value; what is cut off is counted in its place."""
LONGEST_LIST = 100
DEEPEST = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEntry:
    """A call at the front door; what could not be read of it is None."""

    principal: Principal | None
    service: str | None
    operation: str | None
    params: Mapping[str, Any]
    status: int
    error_code: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEntry:
    """An event of a training process; the fields are those of its line."""

    training_job: str
    host: str
    event: str
    pid: int
    signal: str | None = None
    exit_code: int | None = None


class Journal:
    """Lines in the order of ``seq``, flushed one by one; without a path nothing is kept."""

    def __init__(self, path: Path | None, clock: TwinClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seq = 0
        # For its owner alone: it holds what requests hold.
        self._file = append_private(path) if path is not None else None

    def call(self, entry: CallEntry) -> None:
        self._write(
            {
                "kind": "call",
                "principal": entry.principal.arn if entry.principal else None,
                "service": entry.service,
                "operation": entry.operation,
                "params": shortened(entry.params),
                "status": entry.status,
                "error_code": entry.error_code,
            }
        )

    def process(self, entry: ProcessEntry) -> None:
        self._write({"kind": "process", **asdict(entry)})

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def _write(self, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._seq += 1
            if self._file is None:
                return
            line = {"seq": self._seq, "at": _stamp(datetime.now(UTC)), "clock": _stamp(self._clock.now())}
            self._file.write(json.dumps(line | dict(fields), default=str) + "\n")
            self._file.flush()


def shortened(value: Any, depth: int = 0) -> Any:  # noqa: ANN401  any JSON value
    """Return the value with long texts, lists and deep nesting cut; each cut says so."""
    match value:
        case str() if len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}... ({len(value) - LONGEST_TEXT} more characters)"
        case str():
            return value
        case bytes():
            return f"({len(value)} bytes)"
        case Mapping() | Sequence() if depth == DEEPEST:
            return f"... ({len(value)} more, too deep)"
        case Mapping():
            return {str(key): shortened(inner, depth + 1) for key, inner in value.items()}
        case Sequence():
            kept = [shortened(inner, depth + 1) for inner in value[:LONGEST_LIST]]
            return kept if len(value) <= LONGEST_LIST else [*kept, f"... ({len(value) - LONGEST_LIST} more)"]
        case _:
            return value


def _stamp(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
