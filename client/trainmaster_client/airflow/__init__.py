"""Airflow: an operator whose training goes through the queue, and the trigger that waits for it.

Needs the extra ``airflow``. In a DAG, in the place of ``SageMakerTrainingOperator``:
``from trainmaster_client.airflow import TrainmasterTrainingOperator``.
"""

from trainmaster_client.airflow.training_operator import TrainmasterTrainingOperator
from trainmaster_client.airflow.training_trigger import TrainmasterTrainingTrigger

__all__ = ["TrainmasterTrainingOperator", "TrainmasterTrainingTrigger"]
