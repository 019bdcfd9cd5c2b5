"""A CreateTrainingJob request becomes a job for Kubernetes: what each field turns into."""

import json
from typing import Any

import pytest
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.manifests import Channels, Kind

from tests.manifests import IMAGE, START_PROGRAM, large_job, made

LIMITS = {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 32}
MOUNTS = [
    {"name": "start", "mountPath": "/opt/trainmaster", "readOnly": True},
    {"name": "shared-memory", "mountPath": "/dev/shm"},
    {"name": "shared", "mountPath": "/opt/ml/checkpoints", "subPath": "work/checkpoints/llama-7b"},
    {"name": "shared", "mountPath": "/opt/ml/model", "subPath": "work/models/llama-7b/model"},
    {"name": "shared", "mountPath": "/opt/ml/output", "subPath": "work/models/llama-7b/output"},
    {"name": "data-0", "mountPath": "/opt/ml/input/data/train", "readOnly": True},
]
VOLUMES = [
    {"name": "start", "configMap": {"name": "llama-7b-start"}},
    {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    {"name": "shared", "persistentVolumeClaim": {"claimName": "fsx"}},
    {"name": "data-0", "persistentVolumeClaim": {"claimName": "llama-7b-data-0"}},
]
ENV = [{"name": "TRAINING_JOB_NAME", "value": "llama-7b"}, {"name": "NCCL_DEBUG", "value": "WARN"}]
START = ["/opt/trainmaster/start.py", "python3", "/opt/ml/code/launch.py"]
PRE_STOP = {"preStop": {"exec": {"command": ["python3", "/opt/trainmaster/start.py", "--stop"]}}}
TOLERATIONS = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def pod(job: dict[str, Any]) -> dict[str, Any]:
    replica: dict[str, Any] = job["spec"]["pytorchReplicaSpecs"]["Master"]
    return dict(replica["template"]["spec"])


def test_a_pytorchjob_has_a_master_and_the_other_hosts_as_workers() -> None:
    job = made(
        large_job(), kind=Kind.PYTORCHJOB, claim="fsx", service_account="trainer", priority_class="high"
    ).job
    spec = {
        "terminationGracePeriodSeconds": 120,
        "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
        "serviceAccountName": "trainer",
        "priorityClassName": "high",
        "tolerations": TOLERATIONS,
        "containers": [
            {
                "name": "pytorch",
                "image": IMAGE,
                "command": ["python3", *START],
                "args": ["--seed", "1"],
                "env": ENV,
                "resources": {"requests": LIMITS, "limits": LIMITS},
                "volumeMounts": MOUNTS,
                "lifecycle": PRE_STOP,
            }
        ],
        "volumes": VOLUMES,
    }
    replica = {"restartPolicy": "ExitCode", "template": {"spec": spec}}
    assert job == {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "llama-7b",
            "namespace": "default",
            "labels": {
                "app.kubernetes.io/managed-by": "trainmaster",
                "priority": "10",
                "team": "language",
            },
        },
        "spec": {
            "runPolicy": {"cleanPodPolicy": "None", "activeDeadlineSeconds": 86400},
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, **replica},
                "Worker": {"replicas": 1, **replica},
            },
        },
    }


def test_a_trainjob_patches_the_pods_of_its_runtime() -> None:
    job = made(large_job(), kind=Kind.TRAINJOB, claim="fsx", runtime="torch-gpu", namespace="ml").job
    patch = {
        "terminationGracePeriodSeconds": 120,
        "nodeSelector": {"node.kubernetes.io/instance-type": "p5.48xlarge"},
        "tolerations": TOLERATIONS,
        "volumes": VOLUMES,
        "containers": [{"name": "node", "volumeMounts": MOUNTS}],
    }
    assert job["metadata"]["namespace"] == "ml"
    assert job["spec"] == {
        "runtimeRef": {"name": "torch-gpu"},
        "activeDeadlineSeconds": 86400,
        "trainer": {
            "numNodes": 2,
            "image": IMAGE,
            "command": ["python3", *START],
            "args": ["--seed", "1"],
            "env": ENV,
            "resourcesPerNode": {"requests": LIMITS, "limits": LIMITS},
        },
        "runtimePatches": [
            {
                "manager": "trainmaster/manifest",
                "trainingRuntimeSpec": {
                    "template": {
                        "spec": {
                            "replicatedJobs": [
                                {"name": "node", "template": {"spec": {"template": {"spec": patch}}}}
                            ]
                        }
                    }
                },
            }
        ],
    }


def test_on_hyperpod_the_agent_starts_one_launcher_a_host_and_gives_it_its_110_seconds() -> None:
    body = large_job(RetryStrategy={"MaximumRetryAttempts": 3})
    job = made(body, kind=Kind.HYPERPOD, claim="fsx", queue="team-a", priority_class="high").job
    replicas = job["spec"]["replicaSpecs"][0]
    spec = replicas["template"]["spec"]
    assert (job["kind"], replicas["replicas"], job["spec"]["nprocPerNode"]) == ("HyperPodPyTorchJob", 2, "1")
    assert job["spec"]["runPolicy"] == {
        "cleanPodPolicy": "None",
        "activeDeadlineSeconds": 86400,
        "jobMaxRetryCount": 3,
    }
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}
    assert spec["containers"][0]["command"] == [
        "hyperpodrun",
        "--nnodes=2",
        "--nproc-per-node=1",
        "--shutdown-signal=SIGTERM",
        "--shutdown-timeout=110",
        *START,
    ]
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "high"


def test_the_pods_get_the_files_that_sagemaker_would_write() -> None:
    files = made(large_job(), kind=Kind.PYTORCHJOB, claim="fsx").documents[0]
    assert (files["kind"], files["metadata"]["name"]) == ("ConfigMap", "llama-7b-start")
    data = files["data"]
    assert data.pop("start.py") == START_PROGRAM
    assert {name: json.loads(text) for name, text in data.items()} == {
        "hyperparameters.json": {"preset": '"llama2-7b"', "steps": "1000"},
        "inputdataconfig.json": {
            "train": {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated"}
        },
        "checkpointconfig.json": {
            "LocalPath": "/opt/ml/checkpoints",
            "S3Uri": "s3://work/checkpoints/llama-7b",
        },
        "resourceconfig.json": {
            "hosts": ["algo-1", "algo-2"],
            "network_interface_name": "eth0",
            "instance_groups": [
                {
                    "instance_group_name": "homogeneousCluster",
                    "instance_type": "ml.p5.48xlarge",
                    "hosts": ["algo-1", "algo-2"],
                }
            ],
        },
    }


def test_a_channel_in_s3_is_a_volume_of_its_own_bound_to_the_job() -> None:
    _, volume, claim, _ = made(large_job(), kind=Kind.PYTORCHJOB, claim="fsx").documents
    assert volume["spec"] == {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
        "claimRef": {"namespace": "default", "name": "llama-7b-data-0"},
        "mountOptions": ["read-only", "prefix pile/train/"],
        "csi": {
            "driver": "s3.csi.aws.com",
            "volumeHandle": "llama-7b-data-0",
            "volumeAttributes": {"bucketName": "corpora"},
        },
    }
    assert claim["metadata"]["name"] == "llama-7b-data-0"
    assert claim["spec"]["volumeName"] == "llama-7b-data-0"


def test_a_channel_can_be_read_from_a_claim_that_is_linked_with_s3() -> None:
    found = made(large_job(), kind=Kind.TRAINJOB, channels=Channels.CLAIM, claim="fsx")
    assert [one["kind"] for one in found.documents] == ["ConfigMap", "TrainJob"]
    patches = found.job["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]
    mounts = patches["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert mounts["volumeMounts"][-1] == {
        "name": "shared",
        "mountPath": "/opt/ml/input/data/train",
        "subPath": "corpora/pile/train",
        "readOnly": True,
    }


def test_a_channel_can_be_copied_by_an_init_container() -> None:
    found = made(large_job(), kind=Kind.PYTORCHJOB, channels=Channels.INIT, claim="fsx")
    spec = pod(found.job)
    assert spec["initContainers"][0]["command"] == ["python3", "/opt/trainmaster/start.py", "--fetch"]
    assert {"name": "data", "emptyDir": {}} in spec["volumes"]
    assert spec["initContainers"][0]["volumeMounts"] == spec["containers"][0]["volumeMounts"]
    places = json.loads(found.documents[0]["data"]["channels.json"])
    assert places == {"train": {"bucket": "corpora", "prefix": "pile/train"}}


@pytest.mark.parametrize(
    ("kind", "path", "folder"),
    [
        pytest.param("FSxLustre", "/abcdef/pile", "pile", id="FSx has its mount name first"),
        pytest.param("EFS", "/pile/train", "pile/train", id="EFS has not"),
    ],
)
def test_a_file_system_is_a_claim_of_its_name(kind: str, path: str, folder: str) -> None:
    system = {
        "FileSystemId": "fs-0123456789abcdef0",
        "FileSystemAccessMode": "ro",
        "FileSystemType": kind,
        "DirectoryPath": path,
    }
    channel = {"ChannelName": "train", "DataSource": {"FileSystemDataSource": system}}
    network = {"Subnets": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
    body = large_job(InputDataConfig=[channel], VpcConfig=network)
    assert pod(made(body, kind=Kind.PYTORCHJOB, claim="fsx").job)["containers"][0]["volumeMounts"][-1] == {
        "name": "fs-0123456789abcdef0",
        "mountPath": "/opt/ml/input/data/train",
        "subPath": folder,
        "readOnly": True,
    }


def test_one_host_needs_no_efa_and_a_host_without_accelerators_no_devices() -> None:
    one = large_job(
        ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 9}
    )
    job = made(one, kind=Kind.PYTORCHJOB, claim="fsx").job
    assert pod(job)["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert "Worker" not in job["spec"]["pytorchReplicaSpecs"]
    plain = large_job(
        ResourceConfig={"InstanceType": "ml.m5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 9}
    )
    spec = pod(made(plain, kind=Kind.PYTORCHJOB, claim="fsx").job)
    assert "resources" not in spec["containers"][0]
    assert "tolerations" not in spec


def test_trainium_has_devices_of_another_name() -> None:
    body = large_job(
        ResourceConfig={"InstanceType": "ml.trn1.32xlarge", "InstanceCount": 2, "VolumeSizeInGB": 9}
    )
    limits = pod(made(body, kind=Kind.PYTORCHJOB, claim="fsx").job)["containers"][0]["resources"]["limits"]
    assert limits == {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}


def test_source_code_in_s3_is_started_by_our_launcher() -> None:
    body = large_job(HyperParameters={"sagemaker_submit_directory": "s3://work/source.tar.gz"})
    del body["AlgorithmSpecification"]["ContainerEntrypoint"]
    command = pod(made(body, kind=Kind.PYTORCHJOB, claim="fsx").job)["containers"][0]["command"]
    assert command == ["python3", "/opt/trainmaster/start.py", *LAUNCHER]


def test_a_longer_stop_has_a_longer_grace() -> None:
    body = large_job(Environment={"LAUNCH_STOP_SECONDS": "300"})
    assert pod(made(body, kind=Kind.PYTORCHJOB, claim="fsx").job)["terminationGracePeriodSeconds"] == 310


def elastic_job(widths: str) -> dict[str, Any]:
    resources = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 8, "VolumeSizeInGB": 200}
    tags = [{"Key": "trainmaster:elastic", "Value": widths}]
    return large_job(ResourceConfig=resources, Tags=tags)


def test_an_elastic_pytorchjob_has_its_least_and_its_largest_width() -> None:
    spec = made(elastic_job("2-8"), kind=Kind.PYTORCHJOB, claim="fsx").job["spec"]
    policy = {"minReplicas": 2, "maxReplicas": 8, "rdzvBackend": "c10d", "maxRestarts": 100}
    assert spec["elasticPolicy"] == policy


def test_an_elastic_hyperpod_job_has_its_widths_and_the_queues_snooze() -> None:
    spec = made(elastic_job("2 4 8"), kind=Kind.HYPERPOD, claim="fsx").job["spec"]
    assert spec["elasticPolicy"] == {
        "minReplicas": 2,
        "maxReplicas": 8,
        "replicaDiscreteValues": [2, 4, 8],
        "gracefulShutdownTimeoutInSeconds": 120,
    }
    snooze = {"evalPeriodSeconds": 3600, "scaleUpSnoozeTimeInSeconds": 1800}
    assert spec["runPolicy"]["restartPolicy"] == snooze
    command = spec["replicaSpecs"][0]["template"]["spec"]["containers"][0]["command"]
    assert "--nnodes=2:8" in command


@pytest.mark.parametrize("kind", list(Kind))
def test_what_an_elastic_job_becomes_is_noted_and_a_rigid_one_has_none(kind: Kind) -> None:
    noted = " ".join(made(elastic_job("2-8"), kind=kind, claim="fsx").notes)
    assert "Tags (trainmaster:elastic):" in noted
    rigid = made(large_job(), kind=kind, claim="fsx").job["spec"]
    assert "elasticPolicy" not in rigid
    assert "restartPolicy" not in rigid.get("runPolicy", {})
