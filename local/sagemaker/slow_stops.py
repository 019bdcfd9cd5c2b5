"""How long training jobs take to stop, where a test says so."""

import threading
from datetime import timedelta


class SlowStops:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._least: dict[str, timedelta] = {}

    def set(self, training_job: str, least: timedelta) -> None:
        """Keep the job in Stopping for at least so long from its stop on; zero restores the usual."""
        with self._lock:
            self._least[training_job] = least

    def least(self, training_job: str) -> timedelta:
        with self._lock:
            return self._least.get(training_job, timedelta())
