"""Records what a program sees of its job. It imports nothing of ours: it runs in the client's environment."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REQUEST_VARIABLE = "DOOR_REQUEST"
"""File with the CreateTrainingJob request."""
FACTS_VARIABLE = "DOOR_FACTS"
"""File that the program writes at its end."""
LOOK_SECONDS = 1.0


def request() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(os.environ[REQUEST_VARIABLE]).read_text(encoding="utf-8"))
    return document


class Sight:
    """Every answer of DescribeTrainingJob that differs from the one before."""

    def __init__(self) -> None:
        self.statuses: list[list[str]] = []

    def note(self, answer: Mapping[str, Any]) -> bool:
        """Record an answer; return whether the job has ended."""
        pair = [answer["TrainingJobStatus"], answer["SecondaryStatus"]]
        if not self.statuses or self.statuses[-1] != pair:
            self.statuses.append(pair)
            print(*pair, flush=True)
        return pair[0] in {"Completed", "Failed", "Stopped"}

    def write(self, client: str) -> None:
        """Write the facts; ``client`` is its name and version."""
        document = {"client": client, "statuses": self.statuses}
        Path(os.environ[FACTS_VARIABLE]).write_text(json.dumps(document), encoding="utf-8")
