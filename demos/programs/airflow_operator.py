"""Airflow's own operator under ``trainmaster run``, executed as a worker does it; it knows nothing of us."""

import importlib.metadata
from functools import partial

import botocore
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator

from demos.programs.sight import LOOK_SECONDS, Sight, request

PACKAGE = "apache-airflow-providers-amazon"

if __name__ == "__main__":
    sight = Sight()
    # The operator first asks whether a job of this name is there: an error is the answer that it wants.
    botocore.register_initializer(partial(sight.listen, notes_errors=False))
    train = SageMakerTrainingOperator(
        task_id="train", config=request(), check_interval=int(LOOK_SECONDS), print_log=False
    )
    train.execute(context={})
    sight.write(f"{PACKAGE} {importlib.metadata.version(PACKAGE)}")
