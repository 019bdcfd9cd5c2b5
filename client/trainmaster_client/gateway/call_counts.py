"""Count what the gateway did so far, for ``trainmaster doctor``: calls, errors and times, by operation."""

import threading
from collections import Counter, defaultdict, deque
from statistics import quantiles
from typing import Any

_LATEST = 1000
"""Calls of an operation whose times are kept."""
_MOST_OPERATIONS = 100
"""SageMaker has some 400; a caller may invent others."""
_REST = "others"


class CallCounts:
    """The counts of one gateway. Threads may share it."""

    def __init__(self) -> None:
        self._counting = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._errors: dict[str, Counter[str]] = defaultdict(Counter)
        self._seconds: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_LATEST))

    def add(self, operation: str, *, code: str, seconds: float) -> None:
        """Count a call. ``code`` is AWS's name of the error, empty if there was none."""
        with self._counting:
            name = operation or "refused"
            if name not in self._calls and len(self._calls) >= _MOST_OPERATIONS:
                name = _REST
            self._calls[name] += 1
            self._seconds[name].append(seconds)
            if code:
                self._errors[name][code] += 1

    def as_json(self) -> dict[str, Any]:
        with self._counting:
            return {
                name: {
                    "calls": count,
                    "errors": dict(self._errors[name]),
                    **_percentiles(list(self._seconds[name])),
                }
                for name, count in sorted(self._calls.items())
            }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    cuts = quantiles(seconds, n=20) if len(seconds) > 1 else seconds * 19
    return {"p50_ms": round(1000 * cuts[9], 1), "p95_ms": round(1000 * cuts[18], 1)}
