"""Channels that contradict each other, their instance groups, or the way in which they are read."""

from collections.abc import Iterator, Mapping

from trainmaster.core.field_paths import Path
from trainmaster.core.request.validation.fields import Contradiction, contradiction, names_text
from trainmaster.core.request.validation.sections import Section, elements, section, text

_CHANNELS = "InputDataConfig"
_GROUP_NAMES = ("DataSource", "S3DataSource", "InstanceGroupNames")


def channel_contradictions(body: Section) -> Iterator[Contradiction]:
    for find in (_mixed_channels, _unknown_groups, _repeated_channels, _sources, _manifests, _file_mode):
        yield from find(body)


def _channels(body: Section) -> Iterator[tuple[Path, str, Section]]:
    """Yield path, name and content of each channel that has a name."""
    for index, channel in elements(body, _CHANNELS):
        if (name := text(channel, "ChannelName")) is not None:
            yield (_CHANNELS, index), name, channel


def _groups_of(channel: Section) -> tuple[str, ...]:
    """Return the instance groups that a channel is for; none if it names none."""
    source = section(section(channel, "DataSource") or {}, "S3DataSource") or {}
    names = source.get("InstanceGroupNames")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _mixed_channels(body: Section) -> Iterator[Contradiction]:
    """Find channels with groups beside channels without.

    Source of AWS's words: aws/sagemaker-python-sdk#6089 and #5225.
    """
    channels = {name: bool(_groups_of(channel)) for _, name, channel in _channels(body)}
    named = [name for name, has_groups in channels.items() if has_groups]
    others = [name for name, has_groups in channels.items() if not has_groups]
    if named and others:
        yield contradiction(
            (_CHANNELS,),
            f"has channels that name instance groups ({names_text(named)}) and channels that do not"
            f" ({names_text(others)})",
            "give InstanceGroupNames in every channel, or in none",
            aws=f"Some channels have assigned instance groups: [{names_text(named)}] while others not:"
            f" [{names_text(others)}]",
        )


def _unknown_groups(body: Section) -> Iterator[Contradiction]:
    groups = elements(section(body, "ResourceConfig") or {}, "InstanceGroups")
    known = [name for _, group in groups if (name := text(group, "InstanceGroupName")) is not None]
    hint = f"use {names_text(known)}" if known else "leave InstanceGroupNames out, or give InstanceGroups"
    for path, channel_name, channel in _channels(body):
        seen: set[str] = set()
        for index, name in enumerate(_groups_of(channel)):
            place = (*path, *_GROUP_NAMES, index)
            if name not in known:
                yield contradiction(
                    place,
                    "is not an instance group of ResourceConfig",
                    hint,
                    aws=f"Instance group {name} of channel {channel_name} is not defined in ResourceConfig",
                )
            elif name in seen:
                yield contradiction(
                    place,
                    "is named twice",
                    "name each group once",
                    aws=f"Duplicate instance group {name} in channel {channel_name}",
                )
            seen.add(name)


def _repeated_channels(body: Section) -> Iterator[Contradiction]:
    first: dict[str, int] = {}
    for path, name, _ in _channels(body):
        index = path[-1]
        assert isinstance(index, int), index
        if first.setdefault(name, index) != index:
            yield contradiction(
                (*path, "ChannelName"),
                f"is the name of {_CHANNELS}[{first[name]}] too",
                "give each channel a name of its own: it is a folder in the container",
                aws=f"Duplicate channel name: {name}",
            )


# ---- what a channel says of its data


_SOURCES = ("S3DataSource", "FileSystemDataSource", "DatasetSource")


def _sources(body: Section) -> Iterator[Contradiction]:
    for path, name, channel in _channels(body):
        source = section(channel, "DataSource")
        given = [kind for kind in _SOURCES if kind in (source or {})]
        is_empty = source == {} and "DataSource" in channel  # a mistyped source is a mistake of shape
        if is_empty or len(given) > 1:
            yield contradiction(
                (*path, "DataSource"),
                "has no source" if not given else f"has {len(given)} sources: {', '.join(given)}",
                f"give one of {', '.join(_SOURCES)}",
                aws=f"Exactly one of {', '.join(_SOURCES)} must be specified for channel {name}",
            )
        if "FileSystemDataSource" in given and "VpcConfig" not in body:
            yield contradiction(
                (*path, "DataSource", "FileSystemDataSource"),
                "needs a VpcConfig: a file system is reached through its VPC alone",
                "add VpcConfig with a subnet and a security group of the file system",
                aws="VpcConfig must be specified when FileSystemDataSource is used",
            )


def _mode(body: Section, channel: Section) -> str | None:
    return text(channel, "InputMode") or text(
        section(body, "AlgorithmSpecification") or {}, "TrainingInputMode"
    )


def _manifests(body: Section) -> Iterator[Contradiction]:
    """Find contradictions about manifests.

    Source: SageMaker API reference, S3DataSource, S3DataType and AttributeNames.
    """
    for path, name, channel in _channels(body):
        source = section(section(channel, "DataSource") or {}, "S3DataSource") or {}
        at, kind = (*path, "DataSource", "S3DataSource"), text(source, "S3DataType")
        has_names = bool(source.get("AttributeNames"))
        if kind == "AugmentedManifestFile" and _mode(body, channel) in {"File", "FastFile"}:
            yield contradiction(
                (*at, "S3DataType"),
                "is AugmentedManifestFile, which is for the input mode Pipe alone",
                "set InputMode of the channel to Pipe, or use S3Prefix",
                aws=f"AugmentedManifestFile can only be used with Pipe input mode: channel {name}",
            )
        if kind == "AugmentedManifestFile" and not has_names:
            yield contradiction(
                (*at, "AttributeNames"),
                "is required with AugmentedManifestFile",
                "name the attributes of the manifest's lines",
                aws=f"AttributeNames must be specified for AugmentedManifestFile: channel {name}",
            )
        if kind is not None and kind != "AugmentedManifestFile" and has_names:
            yield contradiction(
                (*at, "AttributeNames"),
                f"is for AugmentedManifestFile, not for {kind}",
                "remove it, or set S3DataType to AugmentedManifestFile",
                aws=f"AttributeNames is only supported for AugmentedManifestFile: channel {name}",
            )


_FOR_PIPES: Mapping[str, str] = {"CompressionType": "Gzip", "RecordWrapperType": "RecordIO"}
"""Fields whose value unpacks or wraps data on its way. Source: SageMaker API reference, Channel."""


def _file_mode(body: Section) -> Iterator[Contradiction]:
    for path, name, channel in _channels(body):
        for field, value in _FOR_PIPES.items():
            if text(channel, field) == value and _mode(body, channel) == "File":
                yield contradiction(
                    (*path, field),
                    f"is {value}, which is for the input mode Pipe alone",
                    "remove it: in File mode the job gets the objects as they are",
                    aws=f"{field} {value} is not supported in File input mode: channel {name}",
                )
