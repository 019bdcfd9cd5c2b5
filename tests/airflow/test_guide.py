"""The DAG of the guide, as Airflow loads it."""

import runpy

from trainmaster.core.request.validation import check_request
from trainmaster_client.airflow import TrainmasterTrainingOperator

from tests.markdown import ROOT


def test_the_dag_of_the_guide_has_a_task_that_trains_through_the_queue() -> None:
    dag = runpy.run_path(str(ROOT / "docs/examples/airflow/nightly.py"))["dag"]
    (task,) = dag.tasks
    assert isinstance(task, TrainmasterTrainingOperator)
    task.render_template_fields({"ds_nodash": "20261122"})
    assert task.config["TrainingJobName"] == "nightly-20261122"
    check_request(task.config)
