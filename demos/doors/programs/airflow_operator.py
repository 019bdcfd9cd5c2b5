"""Airflow's own operator under ``trainmaster run``, executed as a worker does it; it knows nothing of us."""

import importlib.metadata
import threading
from collections.abc import Mapping
from typing import Any

import botocore
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator

from demos.doors.programs.sight import LOOK_SECONDS, Sight, request

OPERATION = "sagemaker.DescribeTrainingJob"


class Listener:
    """Hears what the operator's client is answered.

    The queue asks SageMaker, too, while the operator waits for its answer: only the outermost call is the
    operator's.
    """

    def __init__(self, sight: Sight) -> None:
        self._sight = sight
        self._calls = threading.local()

    def join(self, session: Any) -> None:  # noqa: ANN401  botocore's
        session.register(f"before-parameter-build.{OPERATION}", self._begin)
        session.register(f"after-call.{OPERATION}", self._end)

    def _begin(self, **_: object) -> None:
        self._calls.depth = getattr(self._calls, "depth", 0) + 1

    def _end(self, parsed: Mapping[str, Any], **_: object) -> None:
        self._calls.depth -= 1
        if self._calls.depth == 0 and "TrainingJobStatus" in parsed:
            self._sight.note(parsed)


if __name__ == "__main__":
    sight = Sight()
    botocore.register_initializer(Listener(sight).join)
    train = SageMakerTrainingOperator(
        task_id="train", config=request(), check_interval=int(LOOK_SECONDS), print_log=False
    )
    train.execute(context={})
    sight.write(
        f"apache-airflow-providers-amazon {importlib.metadata.version('apache-airflow-providers-amazon')}"
    )
