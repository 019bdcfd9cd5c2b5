"""Records every answer of DescribeTrainingJob that reaches a user's program."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3

FACTS_VARIABLE = "DEMO_FACTS"
"""File that tells what the program has seen so far; at its end, of what."""


class Seen:
    """Listens on a boto3 session, from before its clients are made.

    The queue asks SageMaker, too, with clients of the same session while the program's own call waits for its
    answer. Only the outermost call is the program's.
    """

    def __init__(self, session: boto3.Session) -> None:
        self._statuses: list[list[str]] = []
        self._writing = threading.Lock()
        self._calls = threading.local()
        operation = "sagemaker.DescribeTrainingJob"
        session.events.register(f"before-parameter-build.{operation}", self._begin)
        session.events.register(f"after-call.{operation}", self._end)
        session.events.register(f"after-call-error.{operation}", self._end)

    def write(self, *, sdk: str, version: str, job: str, model_artifacts: str) -> None:
        self._write(sdk_version=f"{sdk} {version}", job=job, model_artifacts=model_artifacts)

    def _write(self, **facts: str) -> None:
        """Replace the file; who reads it meanwhile reads the one before."""
        with self._writing:
            path = Path(os.environ[FACTS_VARIABLE])
            draft = path.with_suffix(".new")
            document = {**facts, "describe_statuses": self._statuses}
            draft.write_text(json.dumps(document), encoding="utf-8")
            draft.replace(path)

    def _begin(self, **_: object) -> None:
        self._calls.depth = getattr(self._calls, "depth", 0) + 1

    def _end(self, parsed: Mapping[str, Any] | None = None, **_: object) -> None:
        self._calls.depth -= 1
        if self._calls.depth == 0 and parsed:
            self._note([parsed.get("TrainingJobStatus", "error"), parsed.get("SecondaryStatus", "")])

    def _note(self, statuses: list[str]) -> None:
        if not self._statuses or self._statuses[-1] != statuses:
            self._statuses.append(statuses)
            self._write()
