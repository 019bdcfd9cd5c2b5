"""A CreateHyperParameterTuningJob request as what it means to the queue, and its trials' requests. Pure."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self, TypeAlias

from trainmaster_client.errors import FieldProblem, UnsupportedTuningError
from trainmaster_client.tuning.search_space import Parameters, SearchSpace, parse_space

Document: TypeAlias = dict[str, Any]

OBJECTIVE_PARAMETER = "_tuning_objective_metric"
"""Hyperparameter that tells a trial's program the metric. Source: SageMaker Python SDK 2.257, tuner.py."""
_CONFIG = "HyperParameterTuningJobConfig"
_DEFINITION = "TrainingJobDefinition"
_INSTANCES = "HyperParameterTuningResourceConfig"
_OF_TUNING = frozenset(
    {"DefinitionName", "TuningObjective", "HyperParameterRanges", "StaticHyperParameters", _INSTANCES}
)
"""What a definition has and no CreateTrainingJob request."""
_ELSEWHERE = (
    "or start it with a client without the hooks: SageMaker runs its trials then, bypassing the queue"
)


class Strategy(StrEnum):
    RANDOM = "Random"
    GRID = "Grid"
    BAYESIAN = "Bayesian"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    metric: str
    is_maximized: bool

    def is_better(self, one: float, other: float) -> bool:
        return one > other if self.is_maximized else one < other

    def is_reached(self, value: float, target: float) -> bool:
        return value >= target if self.is_maximized else value <= target


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningPlan:
    """What a request asks for that the queue can do."""

    name: str
    strategy: Strategy
    objective: Objective
    space: SearchSpace
    most_trials: int
    most_at_once: int
    seed: int
    target: float | None
    """Of the objective: reached, no further trial starts, and those that run are stopped."""
    most_without_progress: int | None
    """Ended trials in a row that were no better than the best before them."""
    output_path: str
    kms_key: str | None
    parents: tuple[str, ...]
    """Tuning jobs whose trials are known from the start."""

    @classmethod
    def parse(cls, request: Mapping[str, Any]) -> Self:
        """Raises UnsupportedTuningError, which names every field that is wrong or not supported."""
        config, definition = request[_CONFIG], request.get(_DEFINITION) or {}
        ranges, where = _ranges(config, definition)
        space, problems = parse_space(ranges, field=where)
        problems = [*_unsupported(request), *problems, *_contradictions(config, space)]
        if problems:
            raise UnsupportedTuningError(tuple(problems))
        name = request["HyperParameterTuningJobName"]
        objective = objective_of(request)
        criteria = config.get("TuningJobCompletionCriteria") or {}
        stalled = criteria.get("BestObjectiveNotImproving") or {}
        output = definition["OutputDataConfig"]
        return cls(
            name=name,
            strategy=Strategy(config["Strategy"]),
            objective=Objective(metric=objective["MetricName"], is_maximized=objective["Type"] == "Maximize"),
            space=space,
            most_trials=_most_trials(config, space),
            most_at_once=config["ResourceLimits"]["MaxParallelTrainingJobs"],
            seed=config.get("RandomSeed", int(_digest(name), 16)),
            target=criteria.get("TargetObjectiveMetricValue"),
            most_without_progress=stalled.get("MaxNumberOfTrainingJobsNotImproving"),
            output_path=output["S3OutputPath"],
            kms_key=output.get("KmsKeyId") or None,
            parents=tuple(_parents(request)),
        )


def trial_name(tuning_job: str, number: int) -> str:
    """As SageMaker's, ``<tuning job>-<number>-<8 hex digits>``, and always the same one.

    So a trial is found by what is known of it, and the study by its first trial.
    """
    return f"{tuning_job}-{number:03d}-{_digest(f'{tuning_job}/{number}')}"


def tuning_job_of(training_job: str) -> str | None:
    """Whose trial has this name; None where it is no trial's."""
    head, _, digits = training_job.rpartition("-")
    tuning_job, _, number = head.rpartition("-")
    is_trial = number.isdigit() and digits and training_job == trial_name(tuning_job, int(number))
    return tuning_job if is_trial else None


def trial_request(request: Mapping[str, Any], number: int, parameters: Parameters) -> Document:
    """CreateTrainingJob's for one trial; of the same arguments always the same.

    Trials share no checkpoints: each has a folder of its own below the path that was given.
    """
    definition, name = request[_DEFINITION], trial_name(request["HyperParameterTuningJobName"], number)
    found = {key: value for key, value in definition.items() if key not in _OF_TUNING}
    if checkpoints := definition.get("CheckpointConfig"):
        place = f"{checkpoints['S3Uri'].rstrip('/')}/{name}"
        found["CheckpointConfig"] = {**checkpoints, "S3Uri": place}
    tags = {"Tags": request["Tags"]} if request.get("Tags") else {}
    return {
        "TrainingJobName": name,
        **found,
        "ResourceConfig": resource_config(request),
        "HyperParameters": {**static_hyperparameters(request), **parameters},
        **tags,
    }


def static_hyperparameters(request: Mapping[str, Any]) -> Parameters:
    given = request[_DEFINITION].get("StaticHyperParameters") or {}
    return {**given, OBJECTIVE_PARAMETER: objective_of(request)["MetricName"]}


def resource_config(request: Mapping[str, Any]) -> Document:
    """A training job's. What the SDK sends is tuning's own, which may be a list."""
    definition = request[_DEFINITION]
    asked = definition.get(_INSTANCES)
    if not asked:
        return dict(definition.get("ResourceConfig") or {})
    whole = {**asked, **(asked.get("InstanceConfigs") or [asked])[0]}
    members = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
    return {name: whole[name] for name in members if name in whole}


def objective_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """It has one of two places."""
    config = request[_CONFIG]
    found: Mapping[str, Any] = (
        config.get("HyperParameterTuningJobObjective") or request[_DEFINITION]["TuningObjective"]
    )
    return found


def _unsupported(request: Mapping[str, Any]) -> Iterator[FieldProblem]:
    config, definition = request[_CONFIG], request.get(_DEFINITION) or {}
    criteria = config.get("TuningJobCompletionCriteria") or {}
    convergence = (criteria.get("ConvergenceDetected") or {}).get("CompleteOnConvergence")
    ranges, where = _ranges(config, definition)
    strategy = config["Strategy"]
    objective = config.get("HyperParameterTuningJobObjective") or definition.get("TuningObjective")
    for is_asked, field, instead in (
        (
            not definition or request.get("TrainingJobDefinitions"),
            "TrainingJobDefinitions",
            "tune one algorithm: give TrainingJobDefinition",
        ),
        (strategy not in list(Strategy), f"{_CONFIG}.Strategy {strategy}", "use Random, Grid or Bayesian"),
        (
            config.get("TrainingJobEarlyStoppingType", "Off") != "Off",
            f"{_CONFIG}.TrainingJobEarlyStoppingType",
            "use Off",
        ),
        (
            "MaxRuntimeInSeconds" in config["ResourceLimits"],
            f"{_CONFIG}.ResourceLimits.MaxRuntimeInSeconds",
            "bound each trial with StoppingCondition, and their number with MaxNumberOfTrainingJobs",
        ),
        (
            convergence == "Enabled",
            f"{_CONFIG}.TuningJobCompletionCriteria.ConvergenceDetected",
            "use BestObjectiveNotImproving",
        ),
        (request.get("Autotune"), "Autotune", "give ranges, limits and a strategy yourself"),
        (not objective, f"{_CONFIG}.HyperParameterTuningJobObjective, left out,", "give the metric"),
        (ranges.get("AutoParameters"), f"{where}.AutoParameters", "give ranges"),
        (
            len((definition.get(_INSTANCES) or {}).get("InstanceConfigs") or ()) > 1,
            f"{_DEFINITION}.{_INSTANCES}.InstanceConfigs",
            "give one type of instance",
        ),
    ):
        if is_asked:
            yield _not_queued(field, instead)


def _not_queued(field: str, instead: str) -> FieldProblem:
    return FieldProblem(field=field, message="the queue does not do this", hint=f"{instead}, {_ELSEWHERE}")


def _contradictions(config: Mapping[str, Any], space: SearchSpace) -> Iterator[FieldProblem]:
    """What SageMaker refuses, too."""
    limits = f"{_CONFIG}.ResourceLimits.MaxNumberOfTrainingJobs"
    if config["Strategy"] == Strategy.GRID:
        if not space.is_of_choices:
            yield FieldProblem(
                field=f"{_CONFIG}.Strategy",
                message="Grid takes categorical ranges alone",
                hint="give each value of a number as a category, or use Random or Bayesian",
            )
    elif "MaxNumberOfTrainingJobs" not in config["ResourceLimits"]:
        yield FieldProblem(field=limits, message="is missing", hint="give a number; Grid alone needs none")


def _ranges(config: Mapping[str, Any], definition: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    if config.get("ParameterRanges") or not definition.get("HyperParameterRanges"):
        return config.get("ParameterRanges") or {}, f"{_CONFIG}.ParameterRanges"
    return definition["HyperParameterRanges"], f"{_DEFINITION}.HyperParameterRanges"


def _most_trials(config: Mapping[str, Any], space: SearchSpace) -> int:
    given: int | None = config["ResourceLimits"].get("MaxNumberOfTrainingJobs")
    if config["Strategy"] != Strategy.GRID:
        assert given is not None, "checked before"
        return given
    return space.combination_count if given is None else min(given, space.combination_count)


def _parents(request: Mapping[str, Any]) -> Iterator[str]:
    for one in (request.get("WarmStartConfig") or {}).get("ParentHyperParameterTuningJobs") or ():
        yield one["HyperParameterTuningJobName"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
