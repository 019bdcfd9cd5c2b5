"""The metrics once more, unrounded, a JSON object a line: for programs that compare runs."""

import os
from pathlib import Path

from training.errors import ConfigError
from training.metrics import StepMetrics


class MetricsFile:
    """Appended to, so a later attempt goes on where the one before stopped.

    Each line is one write, so a kill leaves whole lines.
    """

    def __init__(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError([f"metrics_file {path} cannot be written: {error.strerror}"]) from error

    def add(self, metrics: StepMetrics) -> None:
        os.write(self._file, (metrics.as_json() + "\n").encode())

    def close(self) -> None:
        os.close(self._file)
