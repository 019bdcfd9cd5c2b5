"""Airflow's own operator under ``trainmaster run``, executed as a worker does it; it knows nothing of us."""

import importlib.metadata

import botocore
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator

from demos.programs.sight import LOOK_SECONDS, Sight, request

PACKAGE = "apache-airflow-providers-amazon"

if __name__ == "__main__":
    sight = Sight()
    botocore.register_initializer(sight.listen)
    train = SageMakerTrainingOperator(
        task_id="train", config=request(), check_interval=int(LOOK_SECONDS), print_log=False
    )
    train.execute(context={})
    sight.write(f"{PACKAGE} {importlib.metadata.version(PACKAGE)}")
