"""Fills a container's /opt/ml before it starts: channels, source code, configuration files."""

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from local.sagemaker.hosts import NETWORK_INTERFACE, Place
from local.sagemaker.layout import Layout
from local.sagemaker.ports import ObjectStore
from local.sagemaker.s3_uri import S3Location
from local.sagemaker.script_mode import is_script_mode, source_archive
from local.sagemaker.spec import Channel, TrainingSpec


class PrepareError(Exception):
    """The container cannot be made ready, through a fault of the request."""


def fill(layout: Layout, spec: TrainingSpec, place: Place, store: ObjectStore) -> None:
    """Raises ``PrepareError``."""
    layout.make()
    write_config(layout, spec, place)
    for channel in channels_of(spec, place):
        _download_channel(layout.channel(channel.name), channel, place, store)
    archive = source_archive(spec)
    # A command of the job's own has to fetch its code itself, as the toolkit does for a script.
    if archive is not None and is_script_mode(spec):
        _unpack(layout.code, archive, store)


def channels_of(spec: TrainingSpec, place: Place) -> list[Channel]:
    """Return the channels this host gets: a channel may be for some groups only."""
    return [
        channel for channel in spec.channels if not channel.groups or place.host.group.name in channel.groups
    ]


def write_config(layout: Layout, spec: TrainingSpec, place: Place) -> None:
    """Write the files of /opt/ml/input/config. All hyperparameters are strings there."""
    files: Mapping[str, object] = {
        "hyperparameters.json": layout.localized_map(spec.hyperparameters),
        "inputdataconfig.json": {
            channel.name: dict(channel.settings) for channel in channels_of(spec, place)
        },
        "resourceconfig.json": resource_config(place),
        "checkpointconfig.json": {"LocalPath": layout.told(layout.checkpoints)} if spec.checkpoints else {},
    }
    for name, content in files.items():
        (layout.config / name).write_text(json.dumps(content), encoding="utf-8")


def resource_config(place: Place) -> dict[str, object]:
    return {
        "current_host": place.host.name,
        "current_instance_type": place.host.group.instance_type,
        "current_group_name": place.host.group.name,
        "hosts": place.names,
        "instance_groups": list(place.groups.values()),
        "network_interface_name": NETWORK_INTERFACE,
    }


def _download_channel(folder: Path, channel: Channel, place: Place, store: ObjectStore) -> None:
    """Download all objects under the prefix, or this host's share of them."""
    folder.mkdir(parents=True, exist_ok=True)
    source = channel.source
    for key in _share(channel, place, store.keys(source.bucket, source.key)):
        target = path_in(folder, _name_in_channel(key, source.key))
        if target is not None:
            _download(target, source.bucket, key, store)


def _share(channel: Channel, place: Place, keys: list[str]) -> list[str]:
    """Return this host's keys: with ShardedByS3Key each host of the channel gets different objects."""
    if channel.settings["S3DistributionType"] != "ShardedByS3Key":
        return keys
    sharing = [host for host in place.hosts if not channel.groups or host.group.name in channel.groups]
    return keys[sharing.index(place.host) :: len(sharing)]


def _name_in_channel(key: str, prefix: str) -> str:
    """Return the name of an object in a channel.

    ``data/train`` and ``data/train/`` give ``data/train/a/b`` the name ``a/b``, ``data/tr`` gives it
    ``train/a/b``; the object ``data/train`` itself is ``train``.
    """
    folder = prefix if prefix.endswith("/") else f"{prefix}/"
    if prefix and key.startswith(folder):
        return key.removeprefix(folder)
    return key[prefix.rfind("/") + 1 :]


def path_in(folder: Path, name: str) -> Path | None:
    """Return the object's path; None for a folder's mark and for a name that leads out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or name.endswith("/") or ".." in parts or name.startswith("/"):
        return None
    return folder.joinpath(*parts)


def _download(target: Path, bucket: str, key: str, store: ObjectStore) -> None:
    try:
        body = store.read(bucket, key)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(body)
    except OSError as error:
        raise PrepareError(f"Data download failed: s3://{bucket}/{key}: {error}") from error


def _unpack(folder: Path, archive: S3Location, store: ObjectStore) -> None:
    try:
        body = store.read(archive.bucket, archive.key)
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            for member in tar:
                _extract(folder, tar, member)
    except (OSError, KeyError, tarfile.TarError) as error:
        raise PrepareError(f"Data download failed: {archive.uri}: {error}") from error


def _extract(folder: Path, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    """Extract a file, or a link to one as a copy; ``extractall`` is safe only from Python 3.11.4 on."""
    if member.isdir():
        return
    target = path_in(folder, member.name)
    if target is None:
        raise PrepareError(f"Data download failed: the archive holds {member.name}, which leads out of it")
    content = tar.extractfile(member)
    if content is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.read())
        target.chmod(member.mode)
