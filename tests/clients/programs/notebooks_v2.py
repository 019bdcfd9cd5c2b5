"""Patterns of public notebooks for the SDK v2, each a small one of its own: the SDK's session, no hooks."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import sagemaker
from sagemaker.debugger import ProfilerConfig, TensorBoardOutputConfig
from sagemaker.estimator import Estimator
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.huggingface import HuggingFace
from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch
from sagemaker.sklearn import SKLearn
from sagemaker.tensorflow import TensorFlow
from sagemaker.xgboost import XGBoost

from tests.clients.programs.recorded_notebooks import Here, Notebooks

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
CPU = "ml.m5.xlarge"
COMMAND = ["python", "-c", "print('trained')"]

notebook = Notebooks()


def pytorch(here: Here, **changes: Any) -> PyTorch:
    """As notebooks write it, but for what a pattern is about."""
    whole = {
        "entry_point": "train.py",
        "source_dir": here.code,
        "framework_version": "2.8.0",
        "py_version": "py312",
        "role": here.role,
        "instance_type": CPU,
        "instance_count": 1,
        "base_job_name": here.name,
        **changes,
    }
    return PyTorch(**whole)


def started(estimator: Any, *inputs: Any, **arguments: Any) -> str:
    estimator.fit(*inputs, wait=False, **arguments)
    return str(estimator.latest_training_job.name)


def uploaded(here: Here, name: str) -> str:
    """An input file in S3, as the first cells of notebooks make it."""
    key = f"{here.name}/{name}/data.csv"
    boto3.client("s3").put_object(Bucket=here.bucket, Key=key, Body=b"1,2\n")
    return f"s3://{here.bucket}/{here.name}/{name}"


def container(here: Here, **changes: Any) -> Estimator:
    whole = {
        "image_uri": IMAGE,
        "role": here.role,
        "instance_type": CPU,
        "instance_count": 1,
        "base_job_name": here.name,
        "container_entry_point": COMMAND,
        **changes,
    }
    return Estimator(**whole)


@notebook
def pytorch_with_the_default_session(here: Here) -> Any:
    return started(pytorch(here))


@notebook
def inputs_as_a_string(here: Here) -> Any:
    return started(pytorch(here), uploaded(here, "train"))


@notebook
def inputs_as_a_dict_of_strings(here: Here) -> Any:
    return started(pytorch(here), {one: uploaded(here, one) for one in ("train", "test")})


@notebook
def inputs_as_a_training_input(here: Here) -> Any:
    return started(pytorch(here), TrainingInput(uploaded(here, "train"), content_type="text/csv"))


@notebook
def inputs_as_a_dict_of_training_inputs(here: Here) -> Any:
    channels = {
        one: TrainingInput(uploaded(here, one), s3_data_type="S3Prefix", distribution="FullyReplicated")
        for one in ("train", "validation")
    }
    return started(pytorch(here), channels)


@notebook
def fit_that_waits_with_logs(here: Here) -> Any:
    estimator = pytorch(here)
    estimator.fit()
    return estimator.latest_training_job.name


@notebook
def fit_that_waits_without_logs(here: Here) -> Any:
    estimator = pytorch(here)
    estimator.fit(logs=False)
    return estimator.latest_training_job.name


@notebook
def attach_and_wait(here: Here) -> Any:
    again = PyTorch.attach(started(pytorch(here)))
    return again.latest_training_job.name, {"model_data": again.model_data}


@notebook
def attach_of_a_plain_estimator(here: Here) -> Any:
    again = Estimator.attach(started(container(here)))
    return again.latest_training_job.name, {
        "status": again.latest_training_job.describe()["TrainingJobStatus"]
    }


@notebook
def hugging_face(here: Here) -> Any:
    estimator = HuggingFace(
        entry_point="train.py",
        source_dir=here.code,
        transformers_version="4.49.0",
        pytorch_version="2.5.1",
        py_version="py311",
        image_uri=IMAGE,
        role=here.role,
        instance_type=CPU,
        instance_count=1,
        base_job_name=here.name,
        hyperparameters={"model_name": "distilbert-base-uncased", "epochs": 1},
    )
    return started(estimator)


@notebook
def sklearn(here: Here) -> Any:
    estimator = SKLearn(
        entry_point="train.py",
        source_dir=here.code,
        framework_version="1.2-1",
        role=here.role,
        instance_type=CPU,
        base_job_name=here.name,
    )
    return started(estimator)


@notebook
def xgboost_with_a_script(here: Here) -> Any:
    estimator = XGBoost(
        entry_point="train.py",
        source_dir=here.code,
        framework_version="1.7-1",
        role=here.role,
        instance_type=CPU,
        instance_count=1,
        base_job_name=here.name,
        hyperparameters={"max_depth": 5, "objective": "reg:squarederror"},
    )
    return started(estimator)


@notebook
def tensorflow(here: Here) -> Any:
    estimator = TensorFlow(
        entry_point="train.py",
        source_dir=here.code,
        framework_version="2.19.0",
        py_version="py312",
        role=here.role,
        instance_type=CPU,
        instance_count=1,
        base_job_name=here.name,
    )
    return started(estimator)


@notebook
def an_image_with_its_own_command(here: Here) -> Any:
    return started(container(here))


@notebook
def an_image_with_a_script(here: Here) -> Any:
    script = {"container_entry_point": None, "entry_point": "train.py", "source_dir": here.code}
    return started(container(here, **script))


@notebook
def hyperparameters_of_every_type(here: Here) -> Any:
    values = {"epochs": 3, "rate": 0.5, "layers": [1, 2], "name": "a b", "deep": {"x": True}}
    return started(pytorch(here, hyperparameters=values))


@notebook
def set_hyperparameters(here: Here) -> Any:
    estimator = container(here)
    estimator.set_hyperparameters(max_depth=5, eta=0.2)
    return started(estimator)


@notebook
def spot_with_checkpoints(here: Here) -> Any:
    spot = {"use_spot_instances": True, "max_run": 3600, "max_wait": 7200}
    return started(pytorch(here, **spot, checkpoint_s3_uri=here.s3("checkpoints")))


@notebook
def metric_definitions_and_their_data_frame(here: Here) -> Any:
    definitions = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    estimator = pytorch(here, metric_definitions=definitions)
    estimator.fit(logs=False)
    frame = estimator.training_job_analytics.dataframe()
    return estimator.latest_training_job.name, {"metrics": sorted(set(frame["metric_name"]))}


@notebook
def debugger_and_profiler_off(here: Here) -> Any:
    return started(pytorch(here, debugger_hook_config=False, disable_profiler=True))


@notebook
def profiler_and_tensorboard_on(here: Here) -> Any:
    on = {
        "profiler_config": ProfilerConfig(system_monitor_interval_millis=500),
        "tensorboard_output_config": TensorBoardOutputConfig(s3_output_path=here.s3("tensorboard")),
    }
    return started(pytorch(here, **on))


@notebook
def two_instances_with_mpi(here: Here) -> Any:
    return started(pytorch(here, instance_count=2, distribution={"mpi": {"enabled": True}}))


@notebook
def environment_variables(here: Here) -> Any:
    return started(pytorch(here, environment={"SAID": "by the notebook"}))


@notebook
def tags_of_ones_own_and_of_the_queue(here: Here) -> Any:
    tags = [{"Key": "project", "Value": "one"}, {"Key": "priority", "Value": "5"}]
    name = started(pytorch(here, tags=tags))
    client = boto3.client("sagemaker")
    arn = client.describe_training_job(TrainingJobName=name)["TrainingJobArn"]
    return name, {"tags": client.list_tags(ResourceArn=arn)["Tags"]}


@notebook
def source_code_that_is_in_s3(here: Here) -> Any:
    archive = Path(f"/tmp/{here.name}.tar.gz")
    subprocess.run(["tar", "-czf", str(archive), "-C", here.code, "train.py"], check=True)
    boto3.client("s3").upload_file(str(archive), here.bucket, f"{here.name}/sourcedir.tar.gz")
    archive.unlink()
    return started(pytorch(here, source_dir=here.s3("sourcedir.tar.gz")))


@notebook
def dependencies_beside_the_script(here: Here) -> Any:
    return started(pytorch(here, dependencies=[str(Path(here.code) / "__init__.py")]))


@notebook
def source_code_in_git_that_cannot_be_cloned(here: Here) -> Any:
    estimator = pytorch(here, git_config={"repo": "https://127.0.0.1:9/none.git"}, source_dir=None)
    try:
        estimator.fit()
    except subprocess.CalledProcessError as error:
        return [], {"refused": str(error)}
    return [estimator.latest_training_job.name]


@notebook
def outputs_where_the_user_wants_them(here: Here) -> Any:
    estimator = pytorch(here, output_path=here.s3("models"), code_location=here.s3("code"))
    name = started(estimator)
    estimator.latest_training_job.wait(logs=False)
    return name, {"model_data": estimator.model_data}


@notebook
def time_volume_and_warm_pool(here: Here) -> Any:
    return started(pytorch(here, max_run=600, volume_size=50, keep_alive_period_in_seconds=60))


@notebook
def job_name_given_to_fit(here: Here) -> Any:
    return started(pytorch(here), job_name=f"{here.name}-1")


@notebook
def fit_twice_is_two_jobs(here: Here) -> Any:
    estimator = container(here, base_job_name=None)
    return [started(estimator, job_name=f"{here.name}-{number}") for number in (1, 2)]


@notebook
def stop_and_describe(here: Here) -> Any:
    estimator = container(here, container_entry_point=["sleep", "600"])
    name = started(estimator)
    estimator.latest_training_job.stop()
    return name


@notebook
def fit_of_a_job_that_fails(here: Here) -> Any:
    estimator = pytorch(here, hyperparameters={"fail": "now"})
    try:
        estimator.fit(logs=False)
    except UnexpectedStatusException as error:
        return estimator.latest_training_job.name, {"raised": error.actual_status}
    return estimator.latest_training_job.name


@notebook
def a_session_of_ones_own(here: Here) -> Any:
    return started(pytorch(here, sagemaker_session=sagemaker.Session(boto3.Session())))


@notebook
def a_session_with_a_client_of_ones_own(here: Here) -> Any:
    session = sagemaker.Session(sagemaker_client=boto3.client("sagemaker"))
    return started(container(here, sagemaker_session=session))


@notebook
def isolation_and_retries(here: Here) -> Any:
    return started(container(here, enable_network_isolation=True, max_retry_attempts=2))


@notebook
def boto3_create_and_waiter(here: Here) -> Any:
    client: Any = boto3.client("sagemaker")
    client.create_training_job(
        TrainingJobName=here.name,
        RoleArn=here.role,
        AlgorithmSpecification={
            "TrainingImage": IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": COMMAND,
        },
        OutputDataConfig={"S3OutputPath": here.s3("output")},
        ResourceConfig={"InstanceType": CPU, "InstanceCount": 1, "VolumeSizeInGB": 30},
        StoppingCondition={"MaxRuntimeInSeconds": 3600},
    )
    waiter = client.get_waiter("training_job_completed_or_stopped")
    waiter.wait(TrainingJobName=here.name, WaiterConfig={"Delay": 2, "MaxAttempts": 60})
    return here.name


if __name__ == "__main__":
    notebook.run(sys.argv[2:], Path(sys.argv[1]))
