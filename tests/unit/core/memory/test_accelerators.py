"""The shipped table of accelerators, against what EC2 says of its instance types."""

import gzip
import json
from importlib.resources import files
from typing import Any

import botocore.session
import pytest
from trainmaster.core.costs.prices import USD_PER_HOUR
from trainmaster.core.memory.accelerators import BY_TYPE, EC2, FAMILIES, gpus


@pytest.fixture(scope="module")
def ec2() -> dict[str, Any]:
    """Answers of DescribeInstanceTypes, as moto ships them."""
    packed = files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()
    return dict(json.loads(gzip.decompress(packed)))


@pytest.mark.parametrize(
    ("instance_type", "count"),
    [
        pytest.param("ml.g5.xlarge", 1, id="one GPU"),
        pytest.param("ml.g5.12xlarge", 4, id="four GPUs"),
        pytest.param("ml.g5.16xlarge", 1, id="a larger type with fewer GPUs"),
        pytest.param("ml.g7e.48xlarge", 8, id="g7e"),
        pytest.param("ml.p3.8xlarge", 4, id="p3"),
        pytest.param("ml.p4d.24xlarge", 8, id="p4d"),
        pytest.param("ml.p5.4xlarge", 1, id="the small p5"),
        pytest.param("ml.p5.48xlarge", 8, id="p5"),
        pytest.param("ml.p6-b200.48xlarge", 8, id="p6"),
        pytest.param("ml.p6e-gb200.36xlarge", 4, id="p6e"),
        pytest.param("ml.trn1.32xlarge", 0, id="Trainium is no GPU"),
        pytest.param("ml.inf2.48xlarge", 0, id="Inferentia is no GPU"),
        pytest.param("ml.m5.large", 0, id="general purpose"),
        pytest.param("ml.m7i-flex.large", 0, id="flex"),
        pytest.param("ml.c5n.18xlarge", 0, id="compute optimised"),
        pytest.param("ml.r5d.24xlarge", 0, id="memory optimised"),
        pytest.param("ml.t3.medium", 0, id="burstable"),
        pytest.param("ml.p9.48xlarge", None, id="a family of the future"),
        pytest.param("ml.g5.96xlarge", None, id="a size of the future"),
        pytest.param("g5.xlarge", None, id="not a type of SageMaker's"),
    ],
)
def test_the_gpus_of_an_instance_are_known_or_said_to_be_unknown(
    instance_type: str, count: int | None
) -> None:
    assert gpus(instance_type) == count


def test_the_table_agrees_with_what_ec2_says(ec2: dict[str, Any]) -> None:
    of_ec2 = {family.name for family in FAMILIES if family.source == EC2}
    for name, found in BY_TYPE.items():
        if name.rpartition(".")[0] not in of_ec2:
            continue
        described = ec2[name.removeprefix("ml.")]
        (device,) = (
            described["GpuInfo"]["Gpus"] if found.are_gpus else described["NeuronInfo"]["NeuronDevices"]
        )
        said = (device["Name"], device["Count"], device["MemoryInfo"]["SizeInMiB"])
        assert (name, found.kind, found.count, found.memory_mib) == (name, *said)
        if found.host_gib is not None:
            assert (name, found.host_gib * 1024) == (name, described["MemoryInfo"]["SizeInMiB"])


def test_the_memory_of_every_host_with_gpus_is_known_but_of_the_oldest_and_the_newest() -> None:
    unknown = {name for name, found in BY_TYPE.items() if found.are_gpus and found.host_gib is None}
    assert {name.rpartition(".")[0] for name in unknown} == {"ml.p2", "ml.p6e-gb200"}


def test_every_priced_type_is_known() -> None:
    assert [name for name in USD_PER_HOUR if gpus(name) is None] == []


def test_every_type_that_sagemaker_trains_on_is_known() -> None:
    model = botocore.session.Session().get_service_model("sagemaker")
    offered = model.shape_for("TrainingInstanceType").metadata["enum"]
    assert len(offered) > 200
    assert [name for name in offered if gpus(name) is None] == []
