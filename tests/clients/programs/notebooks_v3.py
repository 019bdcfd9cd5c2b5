"""Patterns of notebooks for the SDK v3, each a small one of its own: the SDK's session, no hooks."""

import sys
from pathlib import Path
from typing import Any

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.resources import TrainingJob
from sagemaker.core.shapes import AlgorithmSpecification, OutputDataConfig, ResourceConfig, StoppingCondition
from sagemaker.core.training.configs import CheckpointConfig, Compute, InputData, SourceCode
from sagemaker.core.training.configs import OutputDataConfig as TrainerOutput
from sagemaker.core.training.configs import StoppingCondition as TrainerTime
from sagemaker.core.utils.exceptions import FailedStatusError
from sagemaker.train import ModelTrainer

from tests.clients.programs.recorded_notebooks import Here, Notebooks

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
CPU = "ml.m5.xlarge"

notebook = Notebooks()


def trainer(here: Here, **changes: Any) -> ModelTrainer:
    whole = {
        "training_image": IMAGE,
        "source_code": SourceCode(source_dir=here.code, entry_script="train.py"),
        "compute": Compute(instance_type=CPU, instance_count=1),
        "role": here.role,
        "base_job_name": here.name,
        **changes,
    }
    return ModelTrainer(**whole)


def started(model: ModelTrainer, **arguments: Any) -> str:
    model.train(wait=False, **arguments)
    job = model._latest_training_job
    assert isinstance(job, TrainingJob)
    return str(job.training_job_name)


@notebook
def trainer_with_the_default_session(here: Here) -> Any:
    return started(trainer(here))


@notebook
def train_that_waits(here: Here) -> Any:
    model = trainer(here)
    model.train(wait=True, logs=False)
    job = model._latest_training_job
    assert isinstance(job, TrainingJob)
    return str(job.training_job_name)


@notebook
def command_in_place_of_a_script(here: Here) -> Any:
    return started(
        trainer(here, source_code=SourceCode(source_dir=here.code, command="python train.py --a 1"))
    )


@notebook
def input_data_from_s3(here: Here) -> Any:
    boto3.client("s3").put_object(Bucket=here.bucket, Key=f"{here.name}/train/data.csv", Body=b"1,2\n")
    return started(
        trainer(here), input_data_config=[InputData(channel_name="train", data_source=here.s3("train"))]
    )


@notebook
def input_data_from_a_folder(here: Here) -> Any:
    return started(trainer(here), input_data_config=[InputData(channel_name="local", data_source=here.code)])


@notebook
def hyperparameters_and_environment(here: Here) -> Any:
    values = {"epochs": 3, "rate": 0.5, "name": "a-b"}
    return started(trainer(here, hyperparameters=values, environment={"SAID": "by the notebook"}))


@notebook
def spot_with_checkpoints_and_outputs(here: Here) -> Any:
    model = trainer(
        here,
        compute=Compute(instance_type=CPU, instance_count=1, enable_managed_spot_training=True),
        stopping_condition=TrainerTime(max_runtime_in_seconds=600, max_wait_time_in_seconds=1200),
        checkpoint_config=CheckpointConfig(s3_uri=here.s3("checkpoints")),
        output_data_config=TrainerOutput(s3_output_path=here.s3("models")),
    )
    return started(model)


@notebook
def job_fetched_by_its_name_and_waited_for(here: Here) -> Any:
    job = TrainingJob.get(started(trainer(here)))
    job.wait(poll=2)
    return str(job.training_job_name), {"status": job.training_job_status}


@notebook
def a_session_of_ones_own(here: Here) -> Any:
    return started(trainer(here, sagemaker_session=Session(boto3.Session(), default_bucket=here.bucket)))


@notebook
def resource_api(here: Here) -> Any:
    job = TrainingJob.create(
        training_job_name=here.name,
        role_arn=here.role,
        algorithm_specification=AlgorithmSpecification(
            training_image=IMAGE,
            training_input_mode="File",
            container_entrypoint=["python", "-c", "print('trained')"],
        ),
        output_data_config=OutputDataConfig(s3_output_path=here.s3("output")),
        resource_config=ResourceConfig(instance_type=CPU, instance_count=1, volume_size_in_gb=30),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=3600),
    )
    assert isinstance(job, TrainingJob)
    job.wait(poll=2)
    return here.name, {"status": job.training_job_status}


@notebook
def train_of_a_job_that_fails(here: Here) -> Any:
    model = trainer(here, hyperparameters={"fail": "now"})
    name = started(model)
    try:
        TrainingJob.get(name).wait(poll=2)
    except FailedStatusError:
        return name, {"raised": "FailedStatusError"}
    return name


if __name__ == "__main__":
    notebook.run(sys.argv[2:], Path(sys.argv[1]))
