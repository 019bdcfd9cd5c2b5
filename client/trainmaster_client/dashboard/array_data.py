"""An array as its page gets it: the API's answer, and of each task its values, metrics, state and cost."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.hooks.array_results import ArrayResults, TaskResult, read_results
from trainmaster_client.jobs.job_views import FINAL_STATES

MOST_ARRAYS = 16
"""Arrays whose results are kept; the one that was not looked at for longest is let go."""
MOST_METRICS = 100
"""Tasks whose metrics one look reads, some ten seconds' worth; the next look continues there."""
AGE_SECONDS = 30.0
"""Seconds for which results of an array whose counts stayed the same are shown again."""


@dataclass(slots=True)
class _Kept:
    metrics: dict[str, Mapping[str, float]] = field(default_factory=dict)
    counts: object = None
    """State and counts of the array when its tasks were read."""
    results: ArrayResults | None = None
    read_at: float = float("-inf")
    using: threading.Lock = field(default_factory=threading.Lock)


class ArrayData:
    """Threads may share it. Its methods raise TrainmasterClientError.

    Args:
        api: Asked for the array and its tasks.
        make_client: Makes a client of SageMaker, which has the metrics.
        monotonic: Seconds of a clock that never goes back.
    """

    def __init__(
        self,
        api: ApiClient,
        make_client: Callable[[], Any],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._make_client, self._monotonic = api, make_client, monotonic
        self._choosing = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def array(self, name: str) -> Document:
        document = self._api.array(name)
        kept = self._of(name)
        with kept.using:
            results = self._results(kept, document)
        return {
            "array": document,
            "values": list(results.value_names),
            "metrics": list(results.metric_names),
            "tasks": [_task(row) for row in results.rows],
            "note": results.note,
        }

    def _results(self, kept: _Kept, document: Document) -> ArrayResults:
        """Read the tasks again where something has changed or may have, which may be many calls."""
        counts, now = (document.get("state"), document.get("tasks")), self._monotonic()
        is_whole = (
            document.get("state") in FINAL_STATES and kept.results is not None and not kept.results.note
        )
        is_fresh = now - kept.read_at < AGE_SECONDS and not (kept.results and kept.results.note)
        if kept.results is None or kept.counts != counts or not (is_whole or is_fresh):
            kept.results = read_results(
                self._api,
                str(document.get("name")),
                make_client=self._make_client,
                known=kept.metrics,
                most=MOST_METRICS,
            )
            kept.counts, kept.read_at = counts, now
        return kept.results

    def _of(self, name: str) -> _Kept:
        with self._choosing:
            kept = self._kept.setdefault(name, _Kept())
            self._kept.move_to_end(name)
            while len(self._kept) > MOST_ARRAYS:
                self._kept.popitem(last=False)
            return kept


def _task(row: TaskResult) -> dict[str, Any]:
    task = row.task
    return {
        "index": task.index,
        "name": task.name,
        "values": dict(task.values),
        "metrics": dict(row.metrics),
        "state": task.state,
        "why": task.why,
        "code": task.code,
        "is_job": task.attempt is not None,
        "cost_usd": task.cost_usd,
        "ended_at": task.ended_at or None,
    }
