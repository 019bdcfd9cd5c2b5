"""What a program sees of its job. Nothing of ours is imported: it runs in the client's own environment."""

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
    found: dict[str, Any] = json.loads(Path(os.environ[REQUEST_VARIABLE]).read_text(encoding="utf-8"))
    return found


class Sight:
    """Every answer of DescribeTrainingJob that differs from the one before."""

    def __init__(self) -> None:
        self.statuses: list[list[str]] = []

    def note(self, answer: Mapping[str, Any]) -> bool:
        """True once the job has ended."""
        found = [answer["TrainingJobStatus"], answer["SecondaryStatus"]]
        if not self.statuses or self.statuses[-1] != found:
            self.statuses.append(found)
            print(*found, flush=True)
        return found[0] in {"Completed", "Failed", "Stopped"}

    def write(self, client: str) -> None:
        """``client``: name and version."""
        document = {"client": client, "statuses": self.statuses}
        Path(os.environ[FACTS_VARIABLE]).write_text(json.dumps(document), encoding="utf-8")
