"""A study in the shapes in which SageMaker describes and lists tuning jobs and their training jobs. Pure."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.tuning.study import Study, StudyStatus, Trial, TrialStatus
from trainmaster_client.tuning.tuning_requests import (
    Document,
    TuningPlan,
    objective_of,
    resource_config,
    static_hyperparameters,
)

PAGE = 10
"""Entries of a page when the request gives no size.
Source: SageMaker API reference, ListTrainingJobsForHyperParameterTuningJob."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arns:
    """Makes the ARNs of one account and region; the prefix is all up to the last colon, including it."""

    prefix: str

    def tuning_job(self, name: str) -> str:
        return f"{self.prefix}hyper-parameter-tuning-job/{name}"

    def training_job(self, name: str) -> str:
        return f"{self.prefix}training-job/{name}"


def description(study: Study, plan: TuningPlan, arns: Arns) -> Document:
    """Return the answer of DescribeHyperParameterTuningJob."""
    request = deepcopy(study.request)
    config, definition = request["HyperParameterTuningJobConfig"], request["TrainingJobDefinition"]
    config["ResourceLimits"]["MaxNumberOfTrainingJobs"] = plan.most_trials
    config.setdefault("TrainingJobEarlyStoppingType", "Off")
    definition["ResourceConfig"] = resource_config(study.request)
    definition["StaticHyperParameters"] = static_hyperparameters(study.request)
    warm = {"WarmStartConfig": request["WarmStartConfig"]} if "WarmStartConfig" in request else {}
    best = study.best(plan.objective)
    failure = {"FailureReason": study.failure} if study.failure else {}
    return {
        **_what_both_say(study, plan, arns),
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": definition,
        **warm,
        **({"BestTrainingJob": training_job_summary(best, study, arns)} if best else {}),
        **failure,
    }


def tuning_job_summary(study: Study, plan: TuningPlan, arns: Arns) -> Document:
    """Return the study's entry in the answer of ListHyperParameterTuningJobs."""
    limits = study.request["HyperParameterTuningJobConfig"]["ResourceLimits"]
    return {
        **_what_both_say(study, plan, arns),
        "Strategy": plan.strategy.value,
        "ResourceLimits": {**limits, "MaxNumberOfTrainingJobs": plan.most_trials},
    }


def _what_both_say(study: Study, plan: TuningPlan, arns: Arns) -> Document:
    ended = {} if study.ended_at is None else {"HyperParameterTuningEndTime": study.ended_at}
    return {
        "HyperParameterTuningJobName": plan.name,
        "HyperParameterTuningJobArn": arns.tuning_job(plan.name),
        "HyperParameterTuningJobStatus": study.status.value,
        "CreationTime": study.created_at,
        "LastModifiedTime": study.modified_at,
        **ended,
        "TrainingJobStatusCounters": status_counters(study.trials),
        "ObjectiveStatusCounters": objective_counters(study.trials),
    }


def status_counters(trials: Iterable[Trial]) -> Document:
    statuses = [trial.seen.status for trial in trials]
    return {
        "Completed": statuses.count(TrialStatus.COMPLETED),
        "InProgress": statuses.count(TrialStatus.IN_PROGRESS),
        "RetryableError": 0,
        "NonRetryableError": statuses.count(TrialStatus.FAILED),
        "Stopped": statuses.count(TrialStatus.STOPPED),
    }


def objective_counters(trials: Iterable[Trial]) -> Document:
    statuses = [_objective_status(trial) for trial in trials]
    return {status: statuses.count(status) for status in ("Succeeded", "Pending", "Failed")}


def _objective_status(trial: Trial) -> str:
    if trial.is_live:
        return "Pending"
    return "Failed" if trial.seen.value is None else "Succeeded"


def training_job_summary(trial: Trial, study: Study, arns: Arns) -> Document:
    """Return the trial's entry in the answer of ListTrainingJobsForHyperParameterTuningJob."""
    seen, objective = trial.seen, objective_of(study.request)
    definition = study.request["TrainingJobDefinition"].get("DefinitionName")
    is_stopping = trial.is_live and study.status is StudyStatus.STOPPING
    metric = {} if seen.value is None else {**objective, "Value": seen.value}
    return {
        **({"TrainingJobDefinitionName": definition} if definition else {}),
        "TrainingJobName": trial.name,
        "TrainingJobArn": arns.training_job(trial.name),
        "CreationTime": trial.proposed_at,
        **({"TrainingStartTime": seen.started_at} if seen.started_at else {}),
        **({"TrainingEndTime": seen.ended_at} if seen.ended_at and seen.started_at else {}),
        "TrainingJobStatus": "Stopping" if is_stopping else seen.status.value,
        "TunedHyperParameters": dict(trial.parameters),
        **({"FailureReason": seen.failure} if seen.failure else {}),
        **({"FinalHyperParameterTuningJobObjectiveMetric": metric} if metric else {}),
        "ObjectiveStatus": _objective_status(trial),
    }


def trial_page(summaries: Iterable[Document], request: Mapping[str, Any]) -> Document:
    """Return the answer of ListTrainingJobsForHyperParameterTuningJob. Raises InvalidArgumentError."""
    wanted = request.get("StatusEquals")
    matches = [summary for summary in summaries if wanted in {None, summary["TrainingJobStatus"]}]
    by = request.get("SortBy") or "Name"
    if by == "FinalObjectiveMetricValue":
        matches = [summary for summary in matches if "FinalHyperParameterTuningJobObjectiveMetric" in summary]
    matches.sort(key=lambda summary: _rank(summary, by), reverse=request.get("SortOrder") == "Descending")
    begin, size = _offset(request.get("NextToken")), request.get("MaxResults") or PAGE
    following = {"NextToken": str(begin + size)} if begin + size < len(matches) else {}
    return {"TrainingJobSummaries": matches[begin : begin + size], **following}


def _rank(summary: Document, by: str) -> tuple[Any, ...]:
    name = summary["TrainingJobName"]
    match by:
        case "CreationTime":
            return (summary["CreationTime"], name)
        case "Status":
            return (summary["TrainingJobStatus"], name)
        case "FinalObjectiveMetricValue":
            return (summary["FinalHyperParameterTuningJobObjectiveMetric"]["Value"], name)
        case _:
            return (name,)


def _offset(token: str | None) -> int:
    if token is not None and not token.isdigit():
        raise InvalidArgumentError("The NextToken is not valid.", hint="Begin without one.")
    return int(token or 0)
