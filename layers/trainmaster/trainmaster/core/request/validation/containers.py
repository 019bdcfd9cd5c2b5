"""Contradictions about the container: its folders, its debugger and profiler, the registry of its image."""

from collections.abc import Iterator

from trainmaster.core.request.validation.fields import Contradiction, contradiction
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number


def container_contradictions(body: Section) -> Iterator[Contradiction]:
    for find in (_local_paths, _rules, _profiling_interval, _registry):
        yield from find(body)


_RESERVED = ("/opt/ml", "/tmp", "/usr/local/nvidia")  # noqa: S108  AWS's own words
"""Source: aws/amazon-sagemaker-examples#3620."""
_FILLED = ("/opt/ml/input", "/opt/ml/model", "/opt/ml/output")
"""Folders that SageMaker fills or uploads. Source: SageMaker developer guide, training storage paths."""
_CHECKPOINTS = "/opt/ml/checkpoints"


def _local_paths(body: Section) -> Iterator[Contradiction]:
    board = text(section(body, "TensorBoardOutputConfig") or {}, "LocalPath")
    if board is not None and any(_is_in(board, folder) for folder in _RESERVED):
        yield contradiction(
            ("TensorBoardOutputConfig", "LocalPath"),
            f"begins with a reserved folder: {', '.join(_RESERVED)}",
            "use another folder, or leave it out",
            aws='"LocalPath" of "TensorBoardOutputConfig" cannot start with the following reserved path:'
            f" [{', '.join(_RESERVED)}]",
        )
    checkpoints = text(section(body, "CheckpointConfig") or {}, "LocalPath")
    if checkpoints is not None and _overlaps(checkpoints):
        yield contradiction(
            ("CheckpointConfig", "LocalPath"),
            f"overlaps with a folder that SageMaker uses itself: {', '.join(_FILLED)}",
            f"use {_CHECKPOINTS}, or leave it out",
            aws='"LocalPath" of "CheckpointConfig" cannot overlap with the following reserved path:'
            f" [{', '.join(_FILLED)}]",
        )


def _overlaps(folder: str) -> bool:
    """Tell whether a folder lies inside of one that SageMaker fills, or around it."""
    return any(_is_in(folder, filled) or _is_in(filled, folder) for filled in _FILLED)


def _is_in(path: str, folder: str) -> bool:
    parts, within = (_parts(location) for location in (path, folder))
    return path.startswith("/") and parts[: len(within)] == within


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


# ---- debugger and profiler


def _rules(body: Section) -> Iterator[Contradiction]:
    """Find contradictions about rules. Source: SageMaker API reference, DebugRuleConfiguration."""
    for kind in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        yield from _repeated_rules(body, kind)
    profiler = section(body, "ProfilerConfig") or {}
    if body.get("ProfilerRuleConfigurations") and profiler.get("DisableProfiler") is True:
        yield contradiction(
            ("ProfilerRuleConfigurations",),
            "cannot be used with DisableProfiler",
            "remove the rules, or DisableProfiler",
            aws="ProfilerRuleConfigurations cannot be specified when DisableProfiler is true",
        )


def _repeated_rules(body: Section, kind: str) -> Iterator[Contradiction]:
    seen: set[str] = set()
    for index, rule in elements(body, kind):
        name = text(rule, "RuleConfigurationName")
        if name is not None and name in seen:
            yield contradiction(
                (kind, index, "RuleConfigurationName"),
                "is the name of another rule too",
                "give each rule a name of its own",
                aws=f"RuleConfigurationName must be unique: {name}",
            )
        seen |= {name} if name is not None else set()


_INTERVALS = (100, 200, 500, 1000, 5000, 60_000)
"""Milliseconds. Source: SageMaker API reference, ProfilerConfig."""


def _profiling_interval(body: Section) -> Iterator[Contradiction]:
    name = "ProfilingIntervalInMilliseconds"
    interval = whole_number(section(body, "ProfilerConfig") or {}, name)
    if interval is not None and interval not in _INTERVALS:
        known = ", ".join(str(milliseconds) for milliseconds in _INTERVALS)
        yield contradiction(
            ("ProfilerConfig", name),
            f"is {interval}, which is none of the intervals that there are",
            f"use one of {known}",
            aws=f"{name} must be one of [{known}]",
        )


# ---- private registries


def _registry(body: Section) -> Iterator[Contradiction]:
    """Check the registry of the image. Source: SageMaker API reference, TrainingImageConfig."""
    algorithm = section(body, "AlgorithmSpecification") or {}
    config = section(algorithm, "TrainingImageConfig") or {}
    at = ("AlgorithmSpecification", "TrainingImageConfig")
    if (
        "TrainingRepositoryAuthConfig" in config
        and text(config, "TrainingRepositoryAccessMode") == "Platform"
    ):
        yield contradiction(
            (*at, "TrainingRepositoryAuthConfig"),
            "is for the access mode Vpc alone",
            "set TrainingRepositoryAccessMode to Vpc, or remove it",
            aws="TrainingRepositoryAuthConfig is only supported when TrainingRepositoryAccessMode is Vpc",
        )
    if config and "AlgorithmName" in algorithm:
        yield contradiction(
            at,
            "is about an image, and the job names an algorithm",
            "remove it, or give TrainingImage in place of AlgorithmName",
            aws="TrainingImageConfig is only supported with TrainingImage",
        )
