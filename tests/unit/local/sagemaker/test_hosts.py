"""Names, groups and ports of the hosts of a job; which part of the data each gets."""

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from local.sagemaker.container_environment import container_environment
from local.sagemaker.hosts import Place, Ports, hosts_of
from local.sagemaker.inputs import fill
from local.sagemaker.layout import Layout
from local.sagemaker.spec import InstanceGroup, TrainingSpec
from tests.integration.local.sagemaker_world import BUCKET, Buckets, request
from tests.unit.local.sagemaker.test_jobs import a_job

TRAINERS = InstanceGroup(name="trainers", instance_type="ml.p4d.24xlarge", count=2)
READERS = InstanceGroup(name="readers", instance_type="ml.c5.xlarge", count=1)


def places(*groups: InstanceGroup) -> list[Place]:
    hosts = hosts_of(groups)
    return [Place(host=host, hosts=hosts, master_port=20001) for host in hosts]


def channel(name: str, **source: Any) -> dict[str, Any]:
    whole = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data"} | source
    return {"ChannelName": name, "DataSource": {"S3DataSource": whole}}


def test_hosts_are_numbered_group_after_group():
    assert [(host.name, host.group.name) for host in hosts_of([TRAINERS, READERS])] == [
        ("algo-1", "trainers"),
        ("algo-2", "trainers"),
        ("algo-3", "readers"),
    ]


def test_a_host_knows_its_place_in_the_cluster(tmp_path):
    _, second, third = places(TRAINERS, READERS)
    groups = {
        "trainers": {
            "instance_group_name": "trainers",
            "instance_type": "ml.p4d.24xlarge",
            "hosts": ["algo-1", "algo-2"],
        },
        "readers": {
            "instance_group_name": "readers",
            "instance_type": "ml.c5.xlarge",
            "hosts": ["algo-3"],
        },
    }

    env = container_environment(a_job(), Layout(root=tmp_path), second, region="us-east-1", given={})

    assert (env["SM_CURRENT_HOST"], env["SM_CURRENT_HOST_RANK"], env["SM_HOST_COUNT"]) == ("algo-2", "1", "3")
    assert json.loads(env["SM_HOSTS"]) == ["algo-1", "algo-2", "algo-3"]
    assert json.loads(env["SM_CURRENT_INSTANCE_GROUP_HOSTS"]) == ["algo-1", "algo-2"]
    assert json.loads(env["SM_INSTANCE_GROUPS"]) == ["trainers", "readers"]
    assert json.loads(env["SM_INSTANCE_GROUPS_DICT"]) == groups
    assert env["SM_IS_HETERO"] == "true"
    assert json.loads(env["SM_RESOURCE_CONFIG"]) == {
        "current_host": "algo-2",
        "current_instance_type": "ml.p4d.24xlarge",
        "current_group_name": "trainers",
        "hosts": ["algo-1", "algo-2", "algo-3"],
        "instance_groups": list(groups.values()),
        "network_interface_name": "lo",
    }
    assert third.rank == 2


def test_an_entrypoint_is_told_where_to_meet_but_not_as_a_script_is(tmp_path):
    env = container_environment(a_job(), Layout(root=tmp_path), *places(READERS), region="r", given={})

    assert (env["SM_MASTER_ADDR"], env["SM_MASTER_PORT"]) == ("127.0.0.1", "20001")
    assert "MASTER_ADDR" not in env


def filled(tmp_path: Path, channels: list[dict[str, Any]], *groups: InstanceGroup) -> dict[str, list[str]]:
    """The files of each host's channels."""
    store = Buckets(BUCKET)
    for name in "abcde":
        store.write(BUCKET, f"data/{name}", b"")
    spec = TrainingSpec.from_request(request("job") | {"InputDataConfig": channels})
    found = {}
    for place in places(*groups):
        layout = Layout(root=tmp_path / place.host.name)
        fill(layout, spec, place, store)
        files = sorted(layout.channel("").rglob("*"))
        found[place.host.name] = [str(one.relative_to(layout.channel(""))) for one in files if one.is_file()]
    return found


def test_every_host_gets_all_objects_of_a_channel(tmp_path):
    whole = [f"train/{name}" for name in "abcde"]

    assert filled(tmp_path, [channel("train")], TRAINERS) == {"algo-1": whole, "algo-2": whole}


def test_a_sharded_channel_is_divided_among_the_hosts(tmp_path):
    sharded = channel("train", S3DataDistributionType="ShardedByS3Key")

    assert filled(tmp_path, [sharded], TRAINERS) == {
        "algo-1": ["train/a", "train/c", "train/e"],
        "algo-2": ["train/b", "train/d"],
    }


def test_a_channel_of_one_group_goes_to_its_hosts_alone(tmp_path):
    for_readers = channel("raw", InstanceGroupNames=["readers"])
    sharded = channel("train", InstanceGroupNames=["trainers"], S3DataDistributionType="ShardedByS3Key")

    found = filled(tmp_path, [for_readers, sharded], READERS, TRAINERS)

    assert found == {
        "algo-1": [f"raw/{name}" for name in "abcde"],
        "algo-2": ["train/a", "train/c", "train/e"],
        "algo-3": ["train/b", "train/d"],
    }
    config = json.loads((tmp_path / "algo-2/opt/ml/input/config/inputdataconfig.json").read_text())
    assert list(config) == ["train"]


def test_a_port_is_handed_out_once_and_only_when_nobody_listens_there():
    ports = Ports()
    first = ports.take()
    with _listening_after(first) as taken:
        second = ports.take()

        assert second not in {first, taken.getsockname()[1]}


def _listening_after(port: int) -> socket.socket:
    """Listens at the first port after this one that is free: other tests use the same ones."""
    while True:
        port = 20_000 + (port - 20_000 + 1) % 10_000
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", port))


def test_what_is_hidden_of_the_processor_is_hidden_in_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a training on the twin and the same one beside it would compute in different precisions."""
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    env = container_environment(a_job(), Layout(root=tmp_path), *places(READERS)[:1], region="r", given={})
    assert env["ONEDNN_MAX_CPU_ISA"] == "AVX2"
    assert "DNNL_MAX_CPU_ISA" not in env
