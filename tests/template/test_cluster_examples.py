"""Cluster, image and pods of docs/examples/kubernetes: pinned, in a reservation, and fitting each other.

Hadolint, the schemas of Kubernetes and a parser of Terraform look at the same files in ``make check``.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainmaster_client.manifests import Channels, Kind

from tests.manifests import made
from tests.template.stack import ROOT

FOLDER = ROOT / "docs/examples/kubernetes"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
CLUSTER: dict[str, Any] = yaml.safe_load((FOLDER / "cluster.yaml").read_text())
TERRAFORM = (FOLDER / "terraform/main.tf").read_text()
REQUEST: dict[str, Any] = json.loads((FOLDER / "request.json").read_text())
COPY_JOB: dict[str, Any] = yaml.safe_load((FOLDER / "data-from-s3.yaml").read_text())
TOOLS: dict[str, Any] = yaml.safe_load((FOLDER / "node-tools.yaml").read_text())
GUIDE = (ROOT / "docs/guides/kubernetes.md").read_text()
DEFINITIONS = os.environ.get("TRAINMASTER_CRDS", "")
LOCK = (ROOT / "requirements.lock").read_text()
GROUPS = {group["name"]: group for group in CLUSTER["managedNodeGroups"]}


def instructions(word: str) -> list[str]:
    """Return the arguments of each instruction of the Dockerfile with this name, its lines joined."""
    whole = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.removeprefix(word).strip() for line in whole.splitlines() if line.startswith(f"{word} ")]


def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["spec"]["template"]["spec"]["containers"]
    return dict(only)


def test_the_image_copies_what_is_here_and_begins_with_the_launcher() -> None:
    ((source, target),) = [line.split() for line in instructions("COPY")]
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["python3", f"{target}/launch.py"]
    assert {"launch.py", "train.py", "__init__.py"} <= {file.name for file in (ROOT / source).iterdir()}
    assert REQUEST["AlgorithmSpecification"]["ContainerEntrypoint"] == ["python3", f"{target}/launch.py"]


def test_the_image_pins_what_the_tests_run_with() -> None:
    (install,) = [line for line in instructions("RUN") if "pip install" in line]
    pinned = dict(re.findall(r"(?m)([\w-]+)==([\d.]+)(?:\s|$)", install))
    assert set(pinned) == {"boto3", "numpy", "s3torchconnector", "safetensors", "tenacity", "torchao"}
    assert {name: f"\n{name}=={number} " in LOCK for name, number in pinned.items()} == dict.fromkeys(
        pinned, True
    )
    torch = re.search(r"TORCH_VERSION=([\d.]+)", DOCKERFILE)
    assert torch
    assert f"TORCH := torch=={torch[1]}\n" in (ROOT / "Makefile").read_text()


def test_no_image_floats_and_the_program_is_not_root() -> None:
    images = [*instructions("FROM"), container(COPY_JOB)["image"], container(TOOLS)["image"]]
    assert [image for image in images if not re.search(r":\d+\.\d+\.\d+", image)] == []
    assert instructions("USER") == ["1000:1000"]
    assert REQUEST["AlgorithmSpecification"]["TrainingImage"] == container(TOOLS)["image"]
    assert f"-t {container(TOOLS)['image']} " in DOCKERFILE


def test_the_image_keeps_no_cache_and_checks_what_it_downloads() -> None:
    runs = instructions("RUN")
    for run in runs:
        assert "apt-get update" not in run or "/var/lib/apt/lists/*" in run
        assert "pip install" not in run or "--no-cache-dir" in run
    (installer,) = [run for run in runs if "efa_installer.sh" in run]
    assert installer.index("gpg --verify") < installer.index("./efa_installer.sh")


def test_both_clusters_take_a_named_reservation_in_its_zone_alone() -> None:
    p5 = GROUPS["p5"]
    assert p5["capacityReservation"]["capacityReservationTarget"]["capacityReservationID"].startswith("cr-")
    assert len(p5["availabilityZones"]) == 1
    assert set(p5["availabilityZones"]) < set(CLUSTER["availabilityZones"])
    assert p5["efaEnabled"] is True
    for line in (
        "capacity_reservation_id = var.capacity_reservation_id",
        'market_type = "capacity-block"',
        "subnet_ids         = [module.vpc.private_subnets[0]]",
        "enable_efa_support = true",
    ):
        assert line in TERRAFORM, line


def test_both_clusters_have_one_version_one_tag_and_container_insights() -> None:
    version = CLUSTER["metadata"]["version"]
    assert f'kubernetes_version                       = "{version}"' in TERRAFORM
    assert f'KUBERNETES = "{version}"' in (ROOT / "tests/scanners/examples_program.py").read_text()
    assert CLUSTER["metadata"]["tags"] == {"project": "trainmaster"}
    assert 'project = "trainmaster"' in TERRAFORM
    addons = {addon["name"] for addon in CLUSTER["addons"]}
    missing = [
        name for name in addons if not re.search(rf"^\s+{re.escape(name)}\s+=", TERRAFORM, re.MULTILINE)
    ]
    assert missing == []
    assert "amazon-cloudwatch-observability" in addons


def test_every_module_of_terraform_is_pinned() -> None:
    sources = re.findall(r'source  = "terraform-aws-modules/[^"]+"\n\s+version = "([^"]+)"', TERRAFORM)
    assert len(sources) == TERRAFORM.count('\nmodule "')
    assert [version for version in sources if not re.fullmatch(r"\d+\.\d+\.\d+", version)] == []


def test_the_copied_data_lies_where_the_training_looks_for_it_and_writes() -> None:
    job = made(REQUEST, kind=Kind.PYTORCHJOB, claim="fsx", channels=Channels.CLAIM).job
    pod = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]
    mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    folders = {mount["subPath"] for mount in mounts.values() if "subPath" in mount}
    copy = container(COPY_JOB)
    bucket = copy["env"][0]["value"]
    script = copy["args"][0].replace("$BUCKET", bucket)
    made_folders = set(re.findall(r'"/claim/([^"]+)"', script.splitlines()[1]))
    assert made_folders == folders
    read_from = mounts["/opt/ml/input/data/train"]["subPath"]
    assert f'sync --only-show-errors "s3://{bucket}/train/" "/claim/{read_from}/"' in script
    assert f'chown -R {instructions("USER")[0]} "/claim/{bucket}"' in script
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for volume in COPY_JOB["spec"]["template"]["spec"]["volumes"]
    }
    assert claims == {"fsx"}


def test_the_pods_have_the_rights_that_both_clusters_give() -> None:
    (rights,) = CLUSTER["iam"]["podIdentityAssociations"]
    name = rights["serviceAccountName"]
    assert COPY_JOB["spec"]["template"]["spec"]["serviceAccountName"] == name
    assert f'service_account = "{name}"' in TERRAFORM
    actions = {action for line in rights["permissionPolicy"]["Statement"] for action in line["Action"]}
    assert actions == {"s3:ListBucket", "s3:GetObject"}
    bucket = container(COPY_JOB)["env"][0]["value"]
    assert {
        line["Resource"].split(":::")[1].split("/")[0] for line in rights["permissionPolicy"]["Statement"]
    } == {bucket}


def test_the_tools_take_no_gpu_from_a_job() -> None:
    pod = TOOLS["spec"]["template"]["spec"]
    assert "nvidia.com/gpu" not in json.dumps(pod["containers"][0]["resources"])
    assert pod["nodeSelector"] == {"node.kubernetes.io/instance-type": GROUPS["p5"]["instanceType"]}
    (packages,) = [run for run in instructions("RUN") if "nvtop" in run]
    assert " htop " in packages


def test_the_claim_of_efs_and_its_volume_name_each_other() -> None:
    volume, claim = yaml.safe_load_all((FOLDER / "efs.yaml").read_text())
    assert volume["spec"]["claimRef"] == {key: claim["metadata"][key] for key in ("namespace", "name")}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"


def test_the_guide_says_how_all_that_bills_ends() -> None:
    part = GUIDE.partition("## How it ends")[2].partition("\n## ")[0]
    for command in (
        "kubectl delete",
        "eksctl delete cluster",
        "terraform destroy",
        "aws ec2 cancel-capacity-reservation",
        "aws fsx delete-file-system",
        "aws efs delete-file-system",
        "aws logs delete-log-group",
        "aws ecr delete-repository",
        "aws resourcegroupstaggingapi get-resources --tag-filters Key=project,Values=trainmaster",
    ):
        assert command in part, command


@pytest.mark.skipif(
    not (DEFINITIONS and (Path(DEFINITIONS) / "eksctl.schema.json").is_file()),
    reason="TRAINMASTER_CRDS names no folder with eksctl.schema.json, as `eksctl utils schema` prints it",
)
def test_the_schema_of_eksctl_takes_the_cluster_and_refuses_a_spoiled_one() -> None:
    from jsonschema import Draft7Validator  # type: ignore[import-untyped]  # noqa: PLC0415

    validator = Draft7Validator(json.loads((Path(DEFINITIONS) / "eksctl.schema.json").read_text()))
    assert [error.message for error in validator.iter_errors(CLUSTER)] == []
    spoiled = json.loads(json.dumps(CLUSTER))
    spoiled["managedNodeGroups"][1]["efaEnable"] = True
    assert list(validator.iter_errors(spoiled))
