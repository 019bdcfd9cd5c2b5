"""The tuner of the SDK v3: its trials are jobs of the queue."""

from pathlib import Path

import boto3
import pytest
from sagemaker.core.parameter import CategoricalParameter
from sagemaker.core.resources import HyperParameterTuningJob
from sagemaker.train.tuner import HyperparameterTuner
from trainmaster_client.api import ApiClient
from trainmaster_client.hook import install, uninstall

from local.twin_process import TwinProcess
from tests.v3.training import eventually, session_of, trainer


def test_a_tuner_queues_its_trials_and_is_described(
    configured: TwinProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(uninstall)
    install()
    tuner = HyperparameterTuner(
        model_trainer=trainer(configured, tmp_path, "trial", session=session_of(configured)),
        objective_metric_name="loss",
        objective_type="Minimize",
        metric_definitions=[{"Name": "loss", "Regex": "loss=([0-9.]+)"}],
        hyperparameter_ranges={"kind": CategoricalParameter(["a", "b"])},
        strategy="Grid",
        max_parallel_jobs=2,
    )
    tuner.tune(job_name="tuned", wait=False)
    api = ApiClient(configured.ready["api_url"], boto3.Session())
    names = [str(job["name"]) for job in eventually(lambda: api.jobs()["jobs"], lambda jobs: len(jobs) == 2)]
    assert {name.rpartition("-")[0] for name in names} == {"tuned-001", "tuned-002"}
    found = HyperParameterTuningJob.get("tuned")
    assert found.hyper_parameter_tuning_job_status == "InProgress"
    found.stop()
    eventually(
        lambda: HyperParameterTuningJob.get("tuned").hyper_parameter_tuning_job_status,
        lambda status: status == "Stopped",
    )
    created = [one for one in configured.records() if one.get("operation") == "CreateTrainingJob"]
    assert {one["principal"].rpartition("/")[2] for one in created} <= {"schedule"}
