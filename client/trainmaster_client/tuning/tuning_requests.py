"""Read CreateHyperParameterTuningJob requests for the queue, and make the requests of their trials. Pure."""

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
"""Members of a training job definition that CreateTrainingJob does not have."""
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

    def is_better(self, value: float, other: float) -> bool:
        return value > other if self.is_maximized else value < other

    def is_reached(self, value: float, target: float) -> bool:
        return value >= target if self.is_maximized else value <= target


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningPlan:
    """The contents of a CreateHyperParameterTuningJob request that the queue can run."""

    name: str
    strategy: Strategy
    objective: Objective
    space: SearchSpace
    most_trials: int
    most_at_once: int
    seed: int
    target: float | None
    """Value of the objective: once it is reached no further trial starts, and the running ones are stopped.
    None: no target."""
    most_without_progress: int | None
    """The study ends after this many ended trials in a row that were no better than the best one; None: no
    bound."""
    output_path: str
    kms_key: str | None
    parents: tuple[str, ...]
    """Tuning jobs whose trials are known to this one from the start."""

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
    """Return SageMaker's form of name, ``<tuning job>-<number>-<8 hex digits>``, always the same for a trial.

    The digits are a hash of the rest, so a trial is found by its tuning job and number, and the study by the
    name of its first trial.
    """
    return f"{tuning_job}-{number:03d}-{_digest(f'{tuning_job}/{number}')}"


def tuning_job_of(training_job: str) -> str | None:
    """Return the tuning job of the trial with this name; None if it is not the name of a trial."""
    head, _, digits = training_job.rpartition("-")
    tuning_job, _, number = head.rpartition("-")
    is_trial = number.isdigit() and digits and training_job == trial_name(tuning_job, int(number))
    return tuning_job if is_trial else None


def trial_request(request: Mapping[str, Any], number: int, parameters: Parameters) -> Document:
    """Return the CreateTrainingJob request of one trial, always the same for the same arguments.

    Trials share no checkpoints: each has a folder of its own below the path in the definition.
    """
    definition, name = request[_DEFINITION], trial_name(request["HyperParameterTuningJobName"], number)
    fields = {key: value for key, value in definition.items() if key not in _OF_TUNING}
    if checkpoints := definition.get("CheckpointConfig"):
        place = f"{checkpoints['S3Uri'].rstrip('/')}/{name}"
        fields["CheckpointConfig"] = {**checkpoints, "S3Uri": place}
    tags = {"Tags": request["Tags"]} if request.get("Tags") else {}
    return {
        "TrainingJobName": name,
        **fields,
        "ResourceConfig": resource_config(request),
        "HyperParameters": {**static_hyperparameters(request), **parameters},
        **tags,
    }


def static_hyperparameters(request: Mapping[str, Any]) -> Parameters:
    given = request[_DEFINITION].get("StaticHyperParameters") or {}
    return {**given, OBJECTIVE_PARAMETER: objective_of(request)["MetricName"]}


def resource_config(request: Mapping[str, Any]) -> Document:
    """Return the ResourceConfig of a training job. The SDK sends tuning's own form, which may be a list."""
    definition = request[_DEFINITION]
    resources = definition.get(_INSTANCES)
    if not resources:
        return dict(definition.get("ResourceConfig") or {})
    whole = {**resources, **(resources.get("InstanceConfigs") or [resources])[0]}
    members = ("InstanceType", "InstanceCount", "VolumeSizeInGB", "VolumeKmsKeyId")
    return {name: whole[name] for name in members if name in whole}


def objective_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the objective, which a request has in one of two places."""
    config = request[_CONFIG]
    objective: Mapping[str, Any] = (
        config.get("HyperParameterTuningJobObjective") or request[_DEFINITION]["TuningObjective"]
    )
    return objective


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
    """Yield contradictions that SageMaker refuses, too."""
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
    for parent in (request.get("WarmStartConfig") or {}).get("ParentHyperParameterTuningJobs") or ():
        yield parent["HyperParameterTuningJobName"]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
