"""Measures a warm ``POST /add-job`` in the api function: CPU from proxy event to answer, and calls."""

import contextlib
import io
from collections import Counter
from itertools import count
from statistics import median
from typing import Any

from benchmarks.api_function import ApiFunction
from benchmarks.stand_in import StandIn, stand_in
from benchmarks.starts import INSTANCE_TYPE

WARM_UP, CALLS, ROUNDS = 40, 200, 4
MAX_MS = 5.0
MAX_CALLS = 4
POOLS = 8
LIMITS = {"max_waiting": 10_000, "max_submissions_per_minute": 10_000}


class Posting:
    """The api function in this process, with a policy of some pools."""

    def __init__(self, aws: StandIn) -> None:
        self.aws = aws
        self._function = ApiFunction(aws)
        self._function.put_policy(_policy())
        self._numbers = count()

    def round(self, calls: int) -> dict[str, Any]:
        """Measure CPU milliseconds of each call, and its calls of AWS."""
        self.aws.counts()
        with contextlib.redirect_stdout(io.StringIO()):
            milliseconds = [round(self.post() * 1000, 3) for _ in range(calls)]
        called = Counter(self.aws.counts())
        return {"milliseconds": milliseconds, "calls": {name: n / calls for name, n in called.items()}}

    def post(self) -> float:
        return self._function.submit(f"measured-{next(self._numbers):06d}-fine-tune-resnet-50")


def measure() -> dict[str, Any]:
    """Return facts of a report: median of each round, the best of them, and AWS calls of one request."""
    with stand_in() as aws:
        posting = Posting(aws)
        posting.round(WARM_UP)
        rounds = [posting.round(CALLS) for _ in range(ROUNDS)]
    medians = [round(median(measured_round["milliseconds"]), 3) for measured_round in rounds]
    return {"handler_cpu_ms": medians, "best_handler_cpu_ms": min(medians), "calls": rounds[-1]["calls"]}


def _policy() -> dict[str, Any]:
    types = [INSTANCE_TYPE, *(f"ml.p4d.{number}xlarge" for number in range(1, POOLS))]
    pools = [
        {"name": f"pool-{number}", "capacity": {kind: 16}, "limits": LIMITS}
        for number, kind in enumerate(types)
    ]
    return {"version": 1, "pools": pools}
