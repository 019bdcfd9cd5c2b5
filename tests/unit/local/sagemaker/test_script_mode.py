"""How script mode turns a request into a command, paths and variables."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from local.sagemaker.container_environment import container_environment
from local.sagemaker.hosts import Place, hosts_of
from local.sagemaker.inputs import _name_in_channel, path_in
from local.sagemaker.layout import Layout
from local.sagemaker.s3_uri import S3Location
from local.sagemaker.script_mode import arguments, command, is_script_mode, user_hyperparameters
from local.sagemaker.spec import TrainingSpec
from tests.integration.local.sagemaker_world import BUCKET, request
from tests.unit.local.sagemaker.test_jobs import a_job

QUOTED = {
    "sagemaker_program": '"train.py"',
    "sagemaker_submit_directory": f'"s3://{BUCKET}/code/sourcedir.tar.gz"',
    "sagemaker_container_log_level": "10",
    "epochs": "3",
    "lr": "1e-3",
    "name": '"a b"',
    "fp16": "true",
    "out": '"/opt/ml/checkpoints/x"',
    "k": "v",
}


def spec(**hyperparameters: str) -> TrainingSpec:
    body = request("job") | {"HyperParameters": hyperparameters}
    del body["AlgorithmSpecification"]["ContainerEntrypoint"]
    return TrainingSpec.from_request(body)


def test_a_job_with_a_program_and_an_archive_is_script_mode():
    assert is_script_mode(spec(**QUOTED))
    assert not is_script_mode(spec(sagemaker_program="train.py"))
    assert not is_script_mode(spec(sagemaker_program="train.py", sagemaker_submit_directory="/opt/ml/code"))
    assert not is_script_mode(replace(spec(**QUOTED), entrypoint=("true",)))


def test_arguments_are_the_scripts_own_hyperparameters_in_the_order_of_their_names():
    assert arguments(user_hyperparameters(QUOTED)) == [
        *("--epochs", "3"),
        *("--fp16", "True"),
        *("-k", "v"),
        *("--lr", "0.001"),
        *("--name", "a b"),
        *("--out", "/opt/ml/checkpoints/x"),
    ]


def test_a_mapping_is_given_as_pairs():
    assert arguments({"map": {"b": 2, "a": 1}}) == ["--map", "a=1,b=2"]


def alone() -> Place:
    """The only host of its job."""
    (host,) = hosts_of(spec().clusters[0])
    return Place(host=host, hosts=(host,), master_port=20001)


def test_torchrun_on_the_second_of_two_hosts_goes_to_the_first():
    hosts = hosts_of([replace(spec().clusters[0][0], count=2)])
    place = Place(host=hosts[1], hosts=hosts, master_port=20001)
    wanted = QUOTED | {"sagemaker_torch_distributed_enabled": "true"}

    argv = command(spec(**wanted), {}, place, processes=4)

    assert argv[4:] == [
        *("torchrun", "--nnodes", "2", "--node_rank", "1"),
        *("--master_addr", "127.0.0.1", "--master_port", "20001"),
        *("--nproc_per_node", "4", "train.py"),
    ]


@pytest.mark.parametrize(
    ("changes", "runner"),
    [
        pytest.param({}, ["python", "train.py", "--epochs", "3"], id="a python script"),
        pytest.param(
            {"sagemaker_program": '"run.sh"'}, ["/bin/sh", "./run.sh", "--epochs", "3"], id="a shell script"
        ),
        pytest.param(
            {"sagemaker_torch_distributed_enabled": "true"},
            [
                *("torchrun", "--standalone", "--nnodes", "1", "--nproc_per_node", "4"),
                *("train.py", "--epochs", "3"),
            ],
            id="torchrun",
        ),
        pytest.param(
            {"sagemaker_torch_distributed_enabled": "false"},
            ["python", "train.py", "--epochs", "3"],
            id="no torchrun",
        ),
    ],
)
def test_the_command_runs_the_script_under_a_shell(changes, runner):
    argv = command(spec(**(QUOTED | changes)), {"epochs": 3}, alone(), processes=4)

    assert argv[:2] == ["/bin/sh", "-c"]
    assert argv[4:] == runner


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/opt/ml", "/r/opt/ml"),
        ("/opt/ml/model/x", "/r/opt/ml/model/x"),
        ('"/opt/ml/model"', '"/r/opt/ml/model"'),
        ("echo 1 > /opt/ml/model/x; ls /opt/ml/input", "echo 1 > /r/opt/ml/model/x; ls /r/opt/ml/input"),
        ("--out=/opt/ml/model", "--out=/r/opt/ml/model"),
        ("/ckpt/7", "/r/ckpt/7"),
        ("/opt/mlflow", "/opt/mlflow"),
        ("/home/opt/ml", "/home/opt/ml"),
        ("s3://bucket/opt/ml/x", "s3://bucket/opt/ml/x"),
    ],
)
def test_paths_of_the_container_become_paths_here(text, expected):
    assert Layout(root=Path("/r"), checkpoint_path="/ckpt/").localized(text) == expected


@pytest.mark.parametrize(
    ("key", "prefix", "name"),
    [
        ("data/train/a/b", "data/train", "a/b"),
        ("data/train/a/b", "data/train/", "a/b"),
        ("data/train/a/b", "data/tr", "train/a/b"),
        ("data/train", "data/train", "train"),
        ("a", "", "a"),
        ("a/b", "", "a/b"),
    ],
)
def test_objects_keep_their_names_below_the_prefix(key, prefix, name):
    assert _name_in_channel(key, prefix) == name


@pytest.mark.parametrize("name", ["", "folder/", "../x", "a/../../x", "/etc/passwd"])
def test_no_object_gets_out_of_its_folder(name):
    assert path_in(Path("/r"), name) is None


def test_the_environment_tells_the_container_what_the_toolkit_tells(tmp_path):
    body = request("job") | {
        "HyperParameters": QUOTED,
        "Environment": {"CACHE": "/opt/ml/cache", "AWS_ENDPOINT_URL": "http://mine", "SM_HOSTS": "no"},
        "InputDataConfig": [
            {
                "ChannelName": "my-data",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x"}},
                "ContentType": "text/csv",
            }
        ],
    }
    del body["AlgorithmSpecification"]["ContainerEntrypoint"]
    job = a_job(**body)

    env = container_environment(
        job,
        Layout(root=tmp_path),
        alone(),
        region="us-east-1",
        given={"AWS_ENDPOINT_URL": "http://twin", "AWS_X": "1"},
    )

    ml = f"{tmp_path}/opt/ml"
    expected = {
        "TRAINING_JOB_NAME": "job",
        "TRAINING_JOB_ARN": job.arn,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://mine",
        "AWS_X": "1",
        "CACHE": f"{ml}/cache",
        "SM_MODEL_DIR": f"{ml}/model",
        "SM_INPUT_DIR": f"{ml}/input",
        "SM_INPUT_CONFIG_DIR": f"{ml}/input/config",
        "SM_OUTPUT_DIR": f"{ml}/output",
        "SM_OUTPUT_DATA_DIR": f"{ml}/output/data",
        "SM_CHECKPOINT_DIR": f"{ml}/checkpoints",
        "SM_CHANNELS": '["my-data"]',
        "SM_CHANNEL_MY_DATA": f"{ml}/input/data/my-data",
        "SM_HOSTS": '["algo-1"]',
        "SM_CURRENT_HOST": "algo-1",
        "SM_CURRENT_HOST_RANK": "0",
        "SM_HOST_COUNT": "1",
        "SM_MASTER_ADDR": "127.0.0.1",
        "SM_MASTER_PORT": "20001",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "20001",
        "SM_CURRENT_INSTANCE_GROUP": "homogeneousCluster",
        "SM_CURRENT_INSTANCE_GROUP_HOSTS": '["algo-1"]',
        "SM_IS_HETERO": "false",
        "SM_LOG_LEVEL": "10",
        "SM_MODULE_NAME": "train",
        "SM_MODULE_DIR": f"s3://{BUCKET}/code/sourcedir.tar.gz",
        "SM_HP_EPOCHS": "3",
        "SM_HP_NAME": "a b",
        "SM_HP_OUT": f"{ml}/checkpoints/x",
        "SM_HP_FP16": "true",
    }
    assert {name: env[name] for name in expected} == expected
    assert json.loads(env["SM_HPS"])["epochs"] == 3
    assert json.loads(env["SM_USER_ARGS"])[:2] == ["--epochs", "3"]
    assert json.loads(env["SM_INPUT_DATA_CONFIG"])["my-data"]["ContentType"] == "text/csv"
    assert json.loads(env["SM_RESOURCE_CONFIG"])["current_host"] == "algo-1"
    assert int(env["SM_NUM_CPUS"]) >= 1


def test_an_s3_location_knows_its_folder():
    location = S3Location.parse("s3://b/a/c")

    assert location.folder == "a/c/"
    assert location.child("d", "e").uri == "s3://b/a/c/d/e"
    assert S3Location.parse("s3://b").child("d").uri == "s3://b/d"
    with pytest.raises(ValueError, match="not an S3 URI"):
        S3Location.parse("https://b/a")
