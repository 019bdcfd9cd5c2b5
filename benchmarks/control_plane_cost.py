"""Measures the control plane's own cost: every call of its functions, counted on a manual clock.

Counted are an idle minute, a minute in which a job runs and another one waits, and the life of a job from its
submission to its end. The twin's journal has the calls, its CloudWatch the runs of functions. Money is
counts times list prices (``control_plane_bill.py``); training instances are not in it.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import Request, urlopen

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from benchmarks.add_job import request_to
from benchmarks.control_plane_bill import RowKey, Unit, row_key, units, usd
from local.engine.dynamodb.values import item_bytes
from local.twin_process import TwinProcess, running_twin

MINUTES, JOBS = 30, 5
MINUTES_PER_MONTH = 730 * 60
MAX_IDLE_USD_PER_MONTH = Decimal(10)
MAX_USD_PER_MILLION_JOBS = Decimal(1000)
FUNCTIONS = ("Api", "Schedule", "OnTrainingJobEvent", "OnIdleAlarm", "Reconcile", "QueueWidget")
TYPE = "ml.g5.xlarge"
POLICY = {"pools": [{"name": "gpu", "capacity": {TYPE: 1}}], "idle": {"then": "notify"}}
_OURS = "assumed-role/"
_STEP_SECONDS = 1
_LONGEST_LIFE_STEPS = 600

Counts = Mapping[Unit, Decimal]


class Plane:
    """A twin of its own, and what was counted since a mark."""

    def __init__(self, twin: TwinProcess) -> None:
        ready = twin.ready
        self._twin = twin
        session = boto3.Session(
            ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"]
        )
        self.api = ApiClient(ready["api_url"], session)
        self._cloudwatch = session.client("cloudwatch", endpoint_url=ready["endpoint_url"])
        self._dynamodb = session.client("dynamodb", endpoint_url=ready["endpoint_url"])
        self.now = self.advance(0)

    def advance(self, seconds: int) -> datetime:
        """Advance the clock; on return everything due by then has happened."""
        body = json.dumps({"advance_seconds": seconds}).encode()
        url, headers = f"{self._twin.ready['control_url']}/clock", {"content-type": "application/json"}
        with urlopen(Request(url, body, headers, method="POST")) as answer:
            self.now = datetime.fromisoformat(json.load(answer)["clock"])
        return self.now

    def counted(self, act: Callable[[], None]) -> Counter[Unit]:
        """Count what ``act`` made the control plane do."""
        before, runs, scheduled = len(self._twin.records()), self._runs(*FUNCTIONS), self._runs("Reconcile")
        rows = self._row_bytes()
        act()
        calls = [
            record
            for record in self._twin.records()[before:]
            if record["kind"] == "call" and _is_billed(record)
        ]
        return units(
            calls,
            invocations=self._runs(*FUNCTIONS) - runs,
            scheduled=self._runs("Reconcile") - scheduled,
            rows=rows | self._row_bytes(),
        )

    def _runs(self, *functions: str) -> int:
        runs = 0
        for name in functions:
            points = self._cloudwatch.get_metric_statistics(
                Namespace="AWS/Lambda",
                MetricName="Invocations",
                Dimensions=[{"Name": "FunctionName", "Value": f"trainmaster-{name}Function"}],
                StartTime=self.now - timedelta(days=1),
                EndTime=self.now + timedelta(minutes=2),
                Period=60,
                Statistics=["Sum"],
            )["Datapoints"]
            runs += int(sum(point["Sum"] for point in points))
        return runs

    def _row_bytes(self) -> dict[RowKey, int]:
        (table,) = self._dynamodb.list_tables()["TableNames"]
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=table)
        return {row_key(row): item_bytes(row) for page in pages for row in page["Items"]}

    def submit(self, name: str, command: str) -> None:
        changes = {
            "ResourceConfig": {"InstanceType": TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 86400},
        }
        self.api.add_job(request_to(self._twin.ready, name, command, changes))


def _is_billed(call: Mapping[str, Any]) -> bool:
    """Calls of functions, and calls of the API; not what this program looked at."""
    return _OURS in (call["principal"] or "") or call["operation"] == "POST /add-job"


def measure(plane: Plane, *, minutes: int, jobs: int) -> dict[str, Counts]:
    """Counts of one minute without jobs, of one with a job that runs and one that waits, and of one job."""
    plane.advance(61)
    idle = plane.counted(lambda: _pass(plane, minutes))
    lives = plane.counted(lambda: _live(plane, jobs))
    during = lives[Unit.SCHEDULED]  # minutes that would have been there without the jobs
    plane.submit("running", "sleep 100000")
    plane.submit("waiting", "true")
    _pass(plane, 10)
    busy = plane.counted(lambda: _pass(plane, minutes))
    quiet = {unit: Decimal(count) / minutes for unit, count in idle.items()}
    job = {unit: (lives[unit] - quiet.get(unit, Decimal(0)) * during) / jobs for unit in lives}
    return {
        "idle minute": quiet,
        "busy minute": {unit: Decimal(count) / minutes for unit, count in busy.items()},
        "job": {unit: max(count, Decimal(0)) for unit, count in job.items()},
    }


def _pass(plane: Plane, minutes: int) -> None:
    for _ in range(minutes):
        plane.advance(60)


def _live(plane: Plane, jobs: int) -> None:
    for number in range(jobs):
        name = f"job-{number}"
        plane.submit(name, "true")
        for _ in range(_LONGEST_LIFE_STEPS):
            plane.advance(_STEP_SECONDS)
            if plane.api.job(name)["state"] == "completed":
                break
        else:
            raise RuntimeError(f"{name} did not end within {_LONGEST_LIFE_STEPS} steps of {_STEP_SECONDS} s")


def _facts(counts: Mapping[str, Counts]) -> dict[str, Any]:
    return {
        "counts": {
            what: {str(unit): float(round(number, 2)) for unit, number in found.items() if number}
            for what, found in counts.items()
        },
        "usd": {
            "idle month": float(round(usd(counts["idle minute"]) * MINUTES_PER_MONTH, 2)),
            "busy month": float(round(usd(counts["busy minute"]) * MINUTES_PER_MONTH, 2)),
            "million jobs": float(round(usd(counts["job"]) * 1_000_000, 2)),
        },
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="control_plane_cost", description=__doc__)
    parser.add_argument("--minutes", type=int, default=MINUTES, help="minutes to count, idle and busy")
    parser.add_argument("--jobs", type=int, default=JOBS, help="jobs to count")
    parser.add_argument("--json", type=Path, default=Path("build/control-plane-cost.json"), help="the report")
    chosen = parser.parse_args(arguments)
    report = Report("control-plane-cost")
    with (
        TemporaryDirectory() as folder,
        running_twin(Path(folder), policy=POLICY, options=["--clock", "manual"]) as twin,
    ):
        report.facts |= _facts(measure(Plane(twin), minutes=chosen.minutes, jobs=chosen.jobs))
    month, million = (Decimal(report.facts["usd"][what]) for what in ("idle month", "million jobs"))
    report.check(
        "idle-month",
        expected=f"<= {MAX_IDLE_USD_PER_MONTH} USD",
        actual=f"{month:.2f}",
        ok=month <= MAX_IDLE_USD_PER_MONTH,
    )
    report.check(
        "million-jobs",
        expected=f"<= {MAX_USD_PER_MILLION_JOBS} USD",
        actual=f"{million:.2f}",
        ok=million <= MAX_USD_PER_MILLION_JOBS,
    )
    return report.finish(chosen.json)


if __name__ == "__main__":
    sys.exit(main())
