"""What a user's program sees of its job: every answer of DescribeTrainingJob that reaches it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3

FACTS_VARIABLE = "DEMO_FACTS"
"""File that the program writes at its end."""


class Seen:
    """Listens on a boto3 session, from before its clients are made."""

    def __init__(self, session: boto3.Session) -> None:
        self._statuses: list[list[str]] = []
        session.events.register("after-call.sagemaker.DescribeTrainingJob", self._note)

    def write(self, *, sdk: str, version: str, job: str, model_artifacts: str) -> None:
        document = {
            "sdk_version": f"{sdk} {version}",
            "job": job,
            "model_artifacts": model_artifacts,
            "describe_statuses": self._statuses,
        }
        Path(os.environ[FACTS_VARIABLE]).write_text(json.dumps(document), encoding="utf-8")

    def _note(self, parsed: Mapping[str, Any], **_: object) -> None:
        found = [parsed.get("TrainingJobStatus", "error"), parsed.get("SecondaryStatus", "")]
        if not self._statuses or self._statuses[-1] != found:
            self._statuses.append(found)
