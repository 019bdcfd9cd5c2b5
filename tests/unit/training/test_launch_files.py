"""Files under input/config that do not say what they should: an end in words, and none that looks done."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.training.launches import Host
from training.launch import LaunchError, command, environment, read_resources, training_hosts

NAMES = ["resourceconfig", "hyperparameters", "inputdataconfig", "checkpointconfig"]
GROUP = {"instance_group_name": "a", "instance_type": "ml.m5.large"}
OTHER = {"instance_group_name": "b", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-2"]}
THREE = ["algo-1", "algo-2", "algo-3"]


def _host(folder: Path, **files: object) -> Host:
    host = Host.with_script(folder, "print('training')")
    for name, content in files.items():
        host.tell(name, content)
    return host


def _resources(folder: Path, content: dict[str, Any]) -> dict[str, Any]:
    (path := folder / "resourceconfig.json").write_text(json.dumps(content))
    return read_resources(path)


@pytest.mark.parametrize(
    ("resources", "told"),
    [
        pytest.param(
            {"current_host": "algo-9", "hosts": ["algo-1"]}, "current_host is algo-9, the hosts are algo-1"
        ),
        pytest.param(
            {"hosts": THREE}, "current_host is missing, which must be one of algo-1, algo-2, algo-3"
        ),
        pytest.param({"current_host": 1, "hosts": ["algo-1"]}, "current_host must be a text"),
        pytest.param({"current_host": "", "hosts": ["algo-1"]}, "current_host must be a text"),
        pytest.param({"current_host": "algo-1", "hosts": []}, "hosts must be a list of names"),
        pytest.param({"current_host": "algo-1", "hosts": "algo-1"}, "hosts must be a list of names"),
        pytest.param({"current_host": "algo-1", "hosts": [1]}, "hosts must be a list of names"),
        pytest.param({"current_host": "algo-1", "hosts": None}, "hosts must be a list of names"),
        pytest.param({"current_host": "a", "hosts": ["a", "a"]}, "a is listed twice"),
        pytest.param({"hosts": ["algo-1"], "instance_groups": [GROUP]}, "instance group a has no hosts"),
        pytest.param({"instance_groups": [{"hosts": ["a"]}]}, "instance group 1 has no instance_group_name"),
        pytest.param({"instance_groups": {"a": GROUP}}, "instance_groups must be a list of objects"),
        pytest.param({"instance_groups": ["a"]}, "instance_groups must be a list of objects"),
        pytest.param(
            {
                "current_host": "algo-3",
                "hosts": THREE,
                "instance_groups": [{**GROUP, "hosts": ["algo-1"]}, OTHER],
            },
            "current_host is algo-3, the hosts of the instance groups are algo-1, algo-2",
        ),
        pytest.param(
            {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": 0},
            "network_interface_name must be a text",
        ),
    ],
)
def test_S12_a_host_that_does_not_know_its_place_is_a_failure(
    tmp_path: Path, resources: dict[str, Any], told: str
) -> None:
    with pytest.raises(LaunchError) as refused:
        _resources(tmp_path, resources)
    where = f"{tmp_path / 'resourceconfig.json'} does not say which hosts train: "
    assert str(refused.value).startswith(where + told)


def test_S12_a_group_without_instances_is_passed_over_unless_it_is_wanted(tmp_path: Path) -> None:
    groups = [{**OTHER, "hosts": []}, {**GROUP, "hosts": ["algo-1"]}]
    resources = {"current_host": "algo-1", "hosts": ["algo-1"], "instance_groups": groups}
    assert training_hosts(_resources(tmp_path, resources), "") == ["algo-1"]
    with pytest.raises(LaunchError, match="there is no host that could train: b has none"):
        training_hosts(resources, "b")
    with pytest.raises(LaunchError, match="each instance group has none"):
        training_hosts({"instance_groups": groups[:1]}, "")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["", "{", '{"a": ', "[]", "null", '"a"', "7", '[["a", 1]]', "\udcff"])
def test_S12_a_file_that_is_cut_empty_or_of_another_shape_is_named(
    tmp_path: Path, name: str, text: str
) -> None:
    (config := tmp_path / "input/config").mkdir(parents=True)
    (tmp_path / "train.py").touch()
    (config / f"{name}.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(LaunchError, match=rf"{name}.json cannot be read as a JSON object"):
        command(environment({"SAGEMAKER_BASE_DIR": str(tmp_path)}), tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_S12_without_a_file_this_machine_trains(tmp_path: Path, name: str) -> None:
    files: dict[str, object] = {other: {} for other in NAMES if other != name}
    done = _host(tmp_path, **files).run()
    assert (done.code, "training" in done.lines) == (0, True)


def test_S12_a_checkpoint_path_that_is_none_is_named(tmp_path: Path) -> None:
    host = _host(tmp_path, checkpointconfig={"LocalPath": 7})
    assert host.run().code == 1
    assert "checkpointconfig.json: LocalPath must be a path, not 7" in host.failure


def test_C36_an_instance_group_without_hosts_ends_in_a_sentence(tmp_path: Path) -> None:
    host = _host(
        tmp_path, resourceconfig={"current_host": "algo-1", "hosts": ["algo-1"], "instance_groups": [GROUP]}
    )
    done = host.run()
    assert (done.code, "training" in done.lines) == (1, False)
    assert "resourceconfig.json does not say which hosts train: instance group a has no hosts" in host.failure


def test_C37_a_host_that_nobody_lists_has_not_completed(tmp_path: Path) -> None:
    host = _host(tmp_path, resourceconfig={"current_host": "algo-9", "hosts": ["algo-1"]})
    done = host.run()
    assert (done.code, "training" in done.lines) == (1, False)
    assert "current_host is algo-9, the hosts are algo-1; fix it, or start again" in host.failure


SCRIPT = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("--model-dir", default=os.environ["SM_MODEL_DIR"])
parser.add_argument("--num-gpus", type=int, default=os.environ["SM_NUM_GPUS"])
parser.add_argument("--hosts", type=list, default=json.loads(os.environ["SM_HOSTS"]))
parser.add_argument("--current-host", default=os.environ["SM_CURRENT_HOST"])
parser.add_argument("--fp16", type=eval)
parser.add_argument("--said")
parser.add_argument("--sizes", type=json.loads)
told = parser.parse_args()
print(told.hosts, told.current_host, told.fp16, told.said, told.sizes, os.environ["SM_HP_FP16"])
"""


def test_S8_the_defaults_of_copied_examples_are_there_and_booleans_are_pythons(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, SCRIPT)
    host.tell("hyperparameters", {"fp16": "true", "said": '"false"', "sizes": '["a", 2]'})
    host.tell(
        "resourceconfig", {"current_host": "algo-1", "hosts": ["algo-1"], "network_interface_name": "lo"}
    )
    done = host.run()
    assert done.code == 0, done.errors
    assert "['algo-1'] algo-1 True false ['a', 2] true" in done.lines


@pytest.mark.parametrize("text", ['"a\\u0000b"', '"\\ud83d"', "a\0b"])
def test_S12_a_hyperparameter_that_cannot_be_passed_is_named(tmp_path: Path, text: str) -> None:
    host = _host(tmp_path, hyperparameters={"name": text})
    assert host.run().code == 1
    assert host.failure.startswith("hyperparameter name has a character that no program can be given: '")


def test_S8_a_variable_longer_than_linux_takes_is_left_out(tmp_path: Path) -> None:
    host = _host(tmp_path, hyperparameters={f"text{number}": "x" * 2500 for number in range(60)})
    (host.code / "train.py").write_text(
        "import os; print(sorted(os.environ.keys() & {'SM_HPS', 'SM_HP_TEXT59'}))"
    )
    done = host.run()
    assert (done.code, "['SM_HP_TEXT59']" in done.lines) == (0, True)
