"""Channels, checkpoints and the model as volumes of a pod, and what must exist besides the pod for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster_client.manifests.job_request import (
    Channels,
    Document,
    ManifestOptions,
    Place,
    Request,
    host_count,
    place_of,
)

START_FOLDER = "/opt/trainmaster"
START = f"{START_FOLDER}/start.py"
INPUT = "/opt/ml/input/data"
CHECKPOINTS = "/opt/ml/checkpoints"
"""Default of CheckpointConfig's LocalPath. Source: SageMaker API reference, CheckpointConfig."""
S3_DRIVER = "s3.csi.aws.com"
_WHATEVER = "1Gi"
"""A volume must have a size; that of S3 is not looked at. Source: Mountpoint for S3, its CSI driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    volumes: tuple[Document, ...]
    mounts: tuple[Document, ...]
    documents: tuple[Document, ...]
    """Volumes of the cluster, with their claims."""
    fetched: Mapping[str, Place]
    """Places that an init container copies, by channel."""


def storage(body: Request, options: ManifestOptions) -> Storage:
    """Return the volumes of a request that passed every check."""
    parts = [*_start(body), *_own_places(body, options), *_channels(body, options)]
    volumes = {volume["name"]: volume for volume, _, _ in parts}
    is_init = options.channels is Channels.INIT
    return Storage(
        volumes=tuple(volumes.values()),
        mounts=tuple(mount for _, mount, _ in parts if mount),
        documents=tuple(document for _, _, documents in parts for document in documents),
        fetched={name: place for name, place, _ in _s3_channels(body)} if is_init else {},
    )


_Part = tuple[Document, Document, tuple[Document, ...]]


def config_map_name(body: Request) -> str:
    return f"{body['TrainingJobName']}-start"


def _start(body: Request) -> Iterator[_Part]:
    source = {"name": "start", "configMap": {"name": config_map_name(body)}}
    yield source, {"name": "start", "mountPath": START_FOLDER, "readOnly": True}, ()
    memory = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}
    yield memory, {"name": "shared-memory", "mountPath": "/dev/shm"}, ()  # noqa: S108  of the pod


def _own_places(body: Request, options: ManifestOptions) -> Iterator[_Part]:
    """Yield the folders that the job writes, on the claim; without a claim they stay in the pod."""
    if not options.claim:
        return
    checkpoints = body.get("CheckpointConfig")
    if checkpoints:
        where = checkpoints.get("LocalPath", CHECKPOINTS)
        yield _on_claim(options.claim, where, _placed(checkpoints["S3Uri"]).folder)
    output = f"{_placed(body['OutputDataConfig']['S3OutputPath']).folder}/{body['TrainingJobName']}"
    yield _on_claim(options.claim, "/opt/ml/model", f"{output}/model")
    yield _on_claim(options.claim, "/opt/ml/output", f"{output}/output")


def _channels(body: Request, options: ManifestOptions) -> Iterator[_Part]:
    for channel in body.get("InputDataConfig", ()):
        if system := channel["DataSource"].get("FileSystemDataSource"):
            yield _on_file_system(system, f"{INPUT}/{channel['ChannelName']}")
    channels = list(_s3_channels(body))
    if options.channels is Channels.INIT and channels:
        yield {"name": "data", "emptyDir": {}}, {"name": "data", "mountPath": INPUT}, ()
        return
    for name, place, number in channels:
        if options.channels is Channels.CLAIM:
            assert options.claim is not None, "checked"
            yield _on_claim(options.claim, f"{INPUT}/{name}", place.folder, read_only=True)
        else:
            volume = f"data-{number}"
            claim = f"{body['TrainingJobName']}-{volume}"
            yield _on_s3(place, options, volume=volume, claim=claim, path=f"{INPUT}/{name}")


def _s3_channels(body: Request) -> Iterator[tuple[str, Place, int]]:
    for number, channel in enumerate(body.get("InputDataConfig", ())):
        source = channel["DataSource"].get("S3DataSource")
        if source is not None:
            yield channel["ChannelName"], _placed(source["S3Uri"]), number


def _placed(uri: str) -> Place:
    place = place_of(uri)
    assert place is not None, "checked"
    return place


def _claimed(name: str, claim: str, mount: Mapping[str, Any]) -> _Part:
    return {"name": name, "persistentVolumeClaim": {"claimName": claim}}, {"name": name, **mount}, ()


def _on_claim(claim: str, path: str, folder: str, *, read_only: bool = False) -> _Part:
    return _claimed("shared", claim, {"mountPath": path, "subPath": folder} | _access(read_only=read_only))


def _access(*, read_only: bool) -> Document:
    return {"readOnly": True} if read_only else {}


def _on_file_system(system: Mapping[str, str], path: str) -> _Part:
    """Mount the claim named after the file system. FSx puts its mount name before each path."""
    skipped = 1 if system["FileSystemType"] == "FSxLustre" else 0
    folder = "/".join(system["DirectoryPath"].strip("/").split("/")[skipped:])
    mount = {"mountPath": path, **({"subPath": folder} if folder else {})}
    ours = _access(read_only=system["FileSystemAccessMode"] == "ro")
    return _claimed(system["FileSystemId"], system["FileSystemId"], mount | ours)


def _on_s3(place: Place, options: ManifestOptions, *, volume: str, claim: str, path: str) -> _Part:
    source, mount, _ = _claimed(volume, claim, {"mountPath": path, "readOnly": True})
    return source, mount, (_s3_volume(claim, place, options), _s3_claim(claim, options))


def _s3_volume(name: str, place: Place, options: ManifestOptions) -> Document:
    """Make a volume bound to its one claim, so that no other job's claim gets it."""
    prefix = [f"prefix {place.key}/"] if place.key else []
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": _WHATEVER},
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "claimRef": {"namespace": options.namespace, "name": name},
            "mountOptions": ["read-only", *prefix],
            "csi": {
                "driver": S3_DRIVER,
                "volumeHandle": name,
                "volumeAttributes": {"bucketName": place.bucket},
            },
        },
    }


def _s3_claim(name: str, options: ManifestOptions) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": options.namespace},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "storageClassName": "",
            "resources": {"requests": {"storage": _WHATEVER}},
            "volumeName": name,
        },
    }


def sagemaker_files(body: Request) -> dict[str, Any]:
    """Return the files SageMaker writes to /opt/ml/input/config; each pod adds its own ``current_host``."""
    resources = body.get("ResourceConfig", {})
    hosts = [f"algo-{number}" for number in range(1, host_count(body) + 1)]
    group = {
        "instance_group_name": "homogeneousCluster",
        "instance_type": resources.get("InstanceType"),
        "hosts": hosts,
    }
    checkpoints = body.get("CheckpointConfig")
    return {
        "hyperparameters.json": dict(body.get("HyperParameters", {})),
        "inputdataconfig.json": {
            channel["ChannelName"]: {"TrainingInputMode": "File", "S3DistributionType": "FullyReplicated"}
            for channel in body.get("InputDataConfig", ())
        },
        "checkpointconfig.json": {"LocalPath": CHECKPOINTS, **checkpoints} if checkpoints else {},
        "resourceconfig.json": {"hosts": hosts, "network_interface_name": "eth0", "instance_groups": [group]},
    }
