"""Records what a program sees of its job. It imports nothing of ours: it runs in the client's environment."""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

REQUEST_VARIABLE = "DOOR_REQUEST"
"""File with the CreateTrainingJob request."""
FACTS_VARIABLE = "DOOR_FACTS"
"""File that tells what the program has seen so far; at its end, by which client."""
LOOK_SECONDS = 1.0
_OPERATION = "sagemaker.DescribeTrainingJob"
_ENDS = frozenset({"Completed", "Failed", "Stopped"})


def request() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path(os.environ[REQUEST_VARIABLE]).read_text(encoding="utf-8"))
    return document


class Sight:
    """Every answer of DescribeTrainingJob that differs from the one before."""

    def __init__(self) -> None:
        self._statuses: list[list[str]] = []
        self._writing = threading.Lock()
        self._calls = threading.local()

    def note(self, answer: Mapping[str, Any], *, shows: bool = True) -> bool:
        """Record an answer, and print it if it is new; return whether the job has ended."""
        pair = [answer.get("TrainingJobStatus", "error"), answer.get("SecondaryStatus", "")]
        if not self._statuses or self._statuses[-1] != pair:
            self._statuses.append(pair)
            self.write()
            if shows:
                print(*pair, flush=True)
        return pair[0] in _ENDS

    def write(self, client: str | None = None, **facts: str) -> None:
        """Replace the file of facts; ``client`` is its name and version."""
        with self._writing:  # whoever reads the file meanwhile reads the one before
            path = Path(os.environ[FACTS_VARIABLE])
            draft = path.with_suffix(".new")
            document = {"client": client, **facts, "statuses": self._statuses}
            draft.write_text(json.dumps(document), encoding="utf-8")
            draft.replace(path)

    def listen(self, events: Any) -> None:
        """Note what reaches the program, from before its clients are made.

        The queue asks SageMaker, too, while the program's own call waits for its answer: only the outermost
        call is the program's.
        """
        events.register(f"before-parameter-build.{_OPERATION}", self._begin)
        events.register(f"after-call.{_OPERATION}", self._end)
        events.register(f"after-call-error.{_OPERATION}", self._end)

    def _begin(self, **_: object) -> None:
        self._calls.depth = getattr(self._calls, "depth", 0) + 1

    def _end(self, parsed: Mapping[str, Any] | None = None, **_: object) -> None:
        self._calls.depth -= 1
        if self._calls.depth == 0 and parsed:
            self.note(parsed, shows=False)
