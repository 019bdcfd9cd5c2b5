"""Notebooks as functions: each runs in a thread, as in a kernel of its own, and what it saw is kept."""

import json
import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

GROUP = "/aws/sagemaker/TrainingJobs"
ENDED = ("Completed", "Failed", "Stopped")
AT_ONCE = 12
LOOK_SECONDS = 4.0
LONGEST_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Here:
    """What a notebook's first cells have."""

    name: str
    """Of its jobs, or what they begin with."""
    code: str
    role: str = os.environ.get("TRAINMASTER_ROLE", "")
    bucket: str = os.environ.get("TRAINMASTER_BUCKET", "")

    def s3(self, folder: str) -> str:
        return f"s3://{self.bucket}/{self.name}/{folder}"


Notebook = Callable[[Here], Any]


@dataclass(slots=True)
class Notebooks:
    kept: dict[str, Notebook] = field(default_factory=dict)

    def __call__(self, notebook: Notebook) -> Notebook:
        """A notebook answers the name of its job, those names, or what it saw beside them."""
        self.kept[notebook.__name__] = notebook
        return notebook

    def run(self, wanted: list[str], results: Path) -> None:
        """Each at once; one that raises is recorded, too."""
        with ThreadPoolExecutor(AT_ONCE) as kernels:
            found = list(kernels.map(self._recorded, wanted or list(self.kept)))
        results.write_text(json.dumps(found), "utf-8")

    def _recorded(self, name: str) -> dict[str, Any]:
        here = Here(name.replace("_", "-"), str(Path(__file__).parent))
        try:
            answer = self.kept[name](here)
        except Exception:  # noqa: BLE001  whatever it is, the test shows it
            return {"notebook": name, "error": traceback.format_exc(), "jobs": []}
        jobs, saw = answer if isinstance(answer, tuple) else (answer, {})
        names = [jobs] if isinstance(jobs, str) else list(jobs)
        return {"notebook": name, "error": None, "saw": saw, "jobs": [ended(one) for one in names]}


def ended(name: str) -> dict[str, Any]:
    """The job as its user sees it at its end, with its log."""
    client, logs = boto3.client("sagemaker"), boto3.client("logs")
    deadline = time.monotonic() + LONGEST_SECONDS
    while (job := client.describe_training_job(TrainingJobName=name))["TrainingJobStatus"] not in ENDED:
        assert time.monotonic() < deadline, f"{name} is still {job['SecondaryStatus']}"
        time.sleep(LOOK_SECONDS)
    lines: list[str] = []
    if "TrainingStartTime" in job:
        streams = logs.describe_log_streams(logGroupName=GROUP, logStreamNamePrefix=f"{name}/")["logStreams"]
        for stream in streams:
            page = logs.get_log_events(
                logGroupName=GROUP, logStreamName=stream["logStreamName"], startFromHead=True
            )
            lines += [event["message"] for event in page["events"]]
    return {"name": name, "status": job["TrainingJobStatus"], "lines": lines}
