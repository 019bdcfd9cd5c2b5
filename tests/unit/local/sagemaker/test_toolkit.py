"""What a script finds in its environment: the same under the twin's toolkit and under the launcher."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.sagemaker.container_environment import container_environment
from local.sagemaker.hosts import Place, hosts_of
from local.sagemaker.inputs import write_config
from local.sagemaker.layout import Layout
from local.sagemaker.spec import InstanceGroup
from tests.unit.local.sagemaker.test_jobs import a_job
from training import launch

OF_THE_TOOLKIT = [
    "SM_CHANNELS",
    "SM_CURRENT_HOST",
    "SM_CURRENT_INSTANCE_GROUP",
    "SM_CURRENT_INSTANCE_GROUP_HOSTS",
    "SM_CURRENT_INSTANCE_TYPE",
    "SM_DISTRIBUTION_INSTANCE_GROUPS",
    "SM_FRAMEWORK_MODULE",
    "SM_FRAMEWORK_PARAMS",
    "SM_HOSTS",
    "SM_HPS",
    "SM_INPUT_CONFIG_DIR",
    "SM_INPUT_DATA_CONFIG",
    "SM_INPUT_DIR",
    "SM_INSTANCE_GROUPS",
    "SM_INSTANCE_GROUPS_DICT",
    "SM_IS_HETERO",
    "SM_LOG_LEVEL",
    "SM_MODEL_DIR",
    "SM_MODULE_DIR",
    "SM_MODULE_NAME",
    "SM_NETWORK_INTERFACE_NAME",
    "SM_NUM_CPUS",
    "SM_NUM_GPUS",
    "SM_NUM_NEURONS",
    "SM_OUTPUT_DATA_DIR",
    "SM_OUTPUT_DIR",
    "SM_OUTPUT_INTERMEDIATE_DIR",
    "SM_RESOURCE_CONFIG",
    "SM_TRAINING_ENV",
    "SM_USER_ARGS",
    "SM_USER_ENTRY_POINT",
]
"""``to_env_vars`` of sagemaker-training 5."""
OF_THE_DRIVER = ["SM_CURRENT_HOST_RANK", "SM_HOST_COUNT", "SM_INPUT_DATA_DIR", "SM_OUTPUT_FAILURE"]
"""What the driver of the SDK v3 has besides."""
HYPERPARAMETERS = {
    "sagemaker_program": '"train.py"',
    "sagemaker_submit_directory": '"s3://bucket/code.tar.gz"',
    "sagemaker_container_log_level": "10",
    "sagemaker_mpi_enabled": "false",
    "sagemaker_job_name": '"job"',
    "batch-size": "64",
    "digits": '"5"',
    "said": '"true"',
    "fp16": "true",
    "lr": "1e-3",
    "name": '"a b"',
    "none": "null",
    "odd": "[1,",
    "sizes": '["a", 2]',
    "map": '{"b": 2, "a": 1}',
    "k": "v",
}
GROUPS = (
    InstanceGroup(name="readers", instance_type="ml.c5.xlarge", count=1),
    InstanceGroup(name="trainers", instance_type="ml.p4d.24xlarge", count=2),
)


def both(tmp_path: Path, host: int, *groups: InstanceGroup) -> tuple[dict[str, str], dict[str, str]]:
    """The twin's environment and the launcher's, for the host of this number."""
    job, layout, hosts = a_job(), Layout(root=tmp_path), hosts_of(groups)
    spec = replace(job.spec, hyperparameters=HYPERPARAMETERS, entrypoint=())
    place = Place(host=hosts[host], hosts=hosts, master_port=20001)
    layout.make()
    write_config(layout, spec, place)
    twin = container_environment(replace(job, spec=spec), layout, place, region="us-east-1", given={})
    bare = {name: text for name, text in twin.items() if not name.startswith("SM_") or "MASTER" in name}
    return twin, launch.environment({**bare, "SAGEMAKER_BASE_DIR": str(layout.ml)})


def of_sagemaker(env: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if name.startswith("SM_")}


@pytest.mark.parametrize(("host", "groups"), [(0, GROUPS[:1]), (0, GROUPS), (2, GROUPS), (1, GROUPS[1:])])
def test_S8_the_launcher_sets_what_the_twins_toolkit_sets(
    tmp_path: Path, host: int, groups: tuple[InstanceGroup, ...]
) -> None:
    twin, launcher = both(tmp_path, host, *groups)
    assert of_sagemaker(launcher) == of_sagemaker(twin)
    assert set(OF_THE_TOOLKIT) | set(OF_THE_DRIVER) <= launcher.keys()


def test_C35_values_are_those_of_the_toolkit_on_several_hosts_and_groups(tmp_path: Path) -> None:
    _, env = both(tmp_path, 2, *GROUPS)
    groups: dict[str, Any] = {
        "readers": {"hosts": ["algo-1"], "instance_group_name": "readers", "instance_type": "ml.c5.xlarge"},
        "trainers": {
            "hosts": ["algo-2", "algo-3"],
            "instance_group_name": "trainers",
            "instance_type": "ml.p4d.24xlarge",
        },
    }
    assert env["SM_HOSTS"] == '["algo-1","algo-2","algo-3"]'
    assert (env["SM_CURRENT_HOST"], env["SM_CURRENT_HOST_RANK"], env["SM_HOST_COUNT"]) == ("algo-3", "2", "3")
    assert (env["SM_CURRENT_INSTANCE_GROUP"], env["SM_IS_HETERO"]) == ("trainers", "true")
    assert env["SM_CURRENT_INSTANCE_TYPE"] == "ml.p4d.24xlarge"
    assert env["SM_CURRENT_INSTANCE_GROUP_HOSTS"] == '["algo-2","algo-3"]'
    assert json.loads(env["SM_INSTANCE_GROUPS_DICT"]) == groups
    assert (env["SM_NUM_GPUS"], env["SM_NUM_NEURONS"]) == (str(launch.gpu_count()), "0")
    assert int(env["SM_NUM_CPUS"]) >= 1
    assert (env["SM_LOG_LEVEL"], env["SM_MODULE_NAME"]) == ("10", "train")
    assert (env["SM_USER_ENTRY_POINT"], env["SM_MODULE_DIR"]) == ("train.py", "s3://bucket/code.tar.gz")
    assert env["SM_FRAMEWORK_PARAMS"] == '{"sagemaker_mpi_enabled":false}'
    assert env["SM_FRAMEWORK_MODULE"] == "sagemaker_pytorch_container.training:main"
    told = json.loads(env["SM_TRAINING_ENV"])
    assert (told["num_gpus"], told["current_host"], told["is_master"]) == (
        launch.gpu_count(),
        "algo-3",
        False,
    )
    assert told["hyperparameters"]["lr"] == 0.001
    assert set(told["channel_input_dirs"]) == set(json.loads(env["SM_CHANNELS"]))


def test_C35_hyperparameters_are_read_as_json_and_told_as_texts(tmp_path: Path) -> None:
    _, env = both(tmp_path, 0, *GROUPS)
    told = json.loads(env["SM_HPS"])
    assert (told["digits"], told["said"], told["fp16"], told["none"]) == ("5", "true", True, None)
    assert env["SM_HP_FP16"] == "true"
    assert env["SM_HP_BATCH-SIZE"] == env["SM_HP_BATCH_SIZE"] == "64"
    assert (env["SM_HP_NAME"], env["SM_HP_NONE"], env["SM_HP_ODD"]) == ("a b", "", "[1,")
    assert env["SM_HP_MAP"] == '{"a":1,"b":2}'
    words = json.loads(env["SM_USER_ARGS"])
    pairs = dict(zip(words[::2], words[1::2], strict=True))
    assert (pairs["--fp16"], pairs["--said"], pairs["--map"]) == ("True", "true", "a=1,b=2")
    assert (pairs["-k"], pairs["--none"], pairs["--sizes"]) == ("v", "", "['a', 2]")
    assert not any("sagemaker" in one for one in words)
