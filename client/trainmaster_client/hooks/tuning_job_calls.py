"""Intercept CreateHyperParameterTuningJob and its sisters: trials are jobs of the queue."""

import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from botocore.validate import ParamValidator

from trainmaster_client.api import Document, field_problem
from trainmaster_client.errors import (
    ConflictError,
    FieldProblem,
    InvalidArgumentError,
    Problem,
    TrainmasterClientError,
    UnsupportedTuningError,
)
from trainmaster_client.hooks.botocore_events import Answer, PlainClients, Where, answered, refused_as
from trainmaster_client.hooks.queued_trials import Jobs, TrialJobs, described_by_sagemaker
from trainmaster_client.hooks.tuning_job_lists import TuningJobLists
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS
from trainmaster_client.jobs.queued_jobs import RecentlyUsed
from trainmaster_client.tuning.proposals import check_installed, proposed
from trainmaster_client.tuning.study import Outcome, Study
from trainmaster_client.tuning.study_runs import StudyPasses, StudyThreads
from trainmaster_client.tuning.study_store import StudyChangedError, StudyPlace, StudyStore
from trainmaster_client.tuning.tuning_answers import (
    Arns,
    description,
    training_job_summary,
    trial_page,
    tuning_job_summary,
)
from trainmaster_client.tuning.tuning_requests import TuningPlan, trial_name, trial_request

_log = logging.getLogger("trainmaster")
_NAME = "HyperParameterTuningJobName"
_DENIED = "AccessDeniedException"
_NAME_TAKEN = "name-taken"
"""The rule that a dry run reports if a job has the name."""
REPEATED_WITHIN = timedelta(seconds=60)
"""A create request this soon after the first one repeats it; the API uses the same time for requests without
a key."""


class TuningCalls:
    """The handlers of one caller, and the studies that its process moves on."""

    def __init__(self, boto_session: boto3.Session, jobs: Jobs, clients: PlainClients) -> None:
        self._session = boto_session
        self._jobs = jobs
        self._clients = clients
        self._places = RecentlyUsed[StudyPlace]()
        self._threads = StudyThreads(first_pause=FIRST_POLL_SECONDS)
        self._store = StudyStore(self._s3)
        self._lists = TuningJobLists(jobs.api, clients, self._summary)

    def answer(self, operation: str, body: Document, where: Where) -> Answer | None:
        """Answer a call; None if SageMaker is to answer it."""
        self._check(operation, body, where)
        match operation:
            case "CreateHyperParameterTuningJob":
                return self._create(body, where)
            case "DescribeHyperParameterTuningJob":
                return self._describe(body, where)
            case "ListTrainingJobsForHyperParameterTuningJob":
                return self._list_trials(body, where)
            case "ListHyperParameterTuningJobs":
                return self._lists.answer(body, where)
            case _:
                return self._stop(body, where)

    def _check(self, operation: str, body: Document, where: Where) -> None:
        """Check the parameters as boto3 does before it calls; calls through the gateway lack that check.

        Raises InvalidArgumentError.
        """
        model = self._clients.of("sagemaker", where).meta.service_model.operation_model(operation)
        report = ParamValidator().validate(body, model.input_shape)
        if report.has_errors():
            raise InvalidArgumentError(
                f"{operation}: {report.generate_report()}.", hint="Nothing was started."
            )

    def tags(self, name: str, where: Where) -> Answer | None:
        """Return the tags that its trials inherit; None if there is no such study."""
        study = self._study(name, where)
        return None if study is None else answered({"Tags": list(study.request.get("Tags") or ())})

    def passes(self, where: Where) -> StudyPasses:
        return StudyPasses(store=self._store, queue=TrialJobs(self._jobs, self._clients, where))

    def place(self, name: str, where: Where) -> StudyPlace | None:
        """Return where the study is; None if it is not known.

        A study is known if this process saw it, or if its first trial exists: that one's name follows from
        the study's.
        """
        known = self._places.get(name)
        if known is not None:
            return known
        request = self._first_request(trial_name(name, 1), where)
        if request is None:
            return None
        place = StudyPlace.below(str((request.get("OutputDataConfig") or {}).get("S3OutputPath")), name)
        self._places.keep(name, place)
        return place

    def _create(self, body: Document, where: Where) -> Answer:
        plan = TuningPlan.parse(body)
        check_installed(plan)
        name, passes = plan.name, self.passes(where)
        place = self.place(name, where) or StudyPlace.below(plan.output_path, name)
        study = self._read(place) or self._created(place, body, plan, where)
        if (taken := _taken(study, body, place, now=datetime.now(UTC))) is not None:
            return refused_as("ResourceInUse", taken)
        self._places.keep(name, place)
        try:
            passes.step(place)
        except (TrainmasterClientError, ClientError, BotoCoreError) as error:
            _log.warning("The trials of %s start later: %s", name, error)
        self._threads.begin(place, passes)
        _log.info("The tuning job %s runs in this process; its study is %s", name, place.url)
        return answered({"HyperParameterTuningJobArn": self._arns(body, where).tuning_job(name)})

    def _created(self, place: StudyPlace, body: Document, plan: TuningPlan, where: Where) -> Study:
        """Write the study, before its first trial is submitted, if that trial would be admitted."""
        now = datetime.now(UTC)
        known = tuple(self._inherited(plan, where))
        study = Study(request=body, created_at=now, modified_at=now, inherited=known)
        foreseen = self._jobs.api.try_job(trial_request(body, 1, proposed(plan, study, 1)))
        if not foreseen.get("valid", True):
            problems = tuple(field_problem(violation) for violation in foreseen.get("violations") or ())
            if any(problem.rule == _NAME_TAKEN for problem in problems):
                raise _first_trial_taken(plan.name, problems)
            raise UnsupportedTuningError(problems)
        try:
            return self._store.create(place, study, kms_key=plan.kms_key).study
        except StudyChangedError:  # another process was faster
            return self._read(place) or study

    def _inherited(self, plan: TuningPlan, where: Where) -> Iterator[Outcome]:
        """Yield ended trials of the parents, in the queue or of SageMaker, that lie in this study's space."""
        for parent in plan.parents:
            for parameters, value in self._outcomes(parent, where):
                if plan.space.holds(parameters):
                    yield Outcome(parameters=dict(parameters), value=value)

    def _outcomes(self, name: str, where: Where) -> Iterator[tuple[Mapping[str, str], float]]:
        study = self._study(name, where)
        if study is not None:
            for trial in study.trials:
                if trial.seen.value is not None:
                    yield trial.parameters, trial.seen.value
            return
        listing = self._clients.of("sagemaker", where).get_paginator(
            "list_training_jobs_for_hyper_parameter_tuning_job"
        )
        for page in listing.paginate(HyperParameterTuningJobName=name, StatusEquals="Completed"):
            for summary in page["TrainingJobSummaries"]:
                if metric := summary.get("FinalHyperParameterTuningJobObjectiveMetric"):
                    yield summary["TunedHyperParameters"], metric["Value"]

    def _describe(self, body: Document, where: Where) -> Answer | None:
        study = self._study(body[_NAME], where)
        if study is None:
            return None
        plan = TuningPlan.parse(study.request)
        return answered(description(study, plan, self._arns(study.request, where)))

    def _list_trials(self, body: Document, where: Where) -> Answer | None:
        study = self._study(body[_NAME], where)
        if study is None:
            return None
        arns = self._arns(study.request, where)
        summaries = [training_job_summary(trial, study, arns) for trial in study.trials]
        return answered(trial_page(summaries, body))

    def _summary(self, name: str, where: Where) -> Document | None:
        study = self._study(name, where)
        if study is None:
            return None
        return tuning_job_summary(study, TuningPlan.parse(study.request), self._arns(study.request, where))

    def _stop(self, body: Document, where: Where) -> Answer | None:
        place = self.place(body[_NAME], where)
        study = None if place is None else self._read(place)
        if place is None or study is None:
            return None
        if study.ended_at is not None:
            ended = f"The tuning job {body[_NAME]} has ended: {study.status}."
            return refused_as(
                "ValidationException", InvalidArgumentError(ended, hint="Nothing is left to stop.")
            )
        self.passes(where).stop(place)
        return answered({})

    def _study(self, name: str, where: Where) -> Study | None:
        place, passes = self.place(name, where), self.passes(where)
        study = None if place is None else passes.observed(place)
        if place is not None and study is not None and study.ended_at is None:
            self._threads.keep_on(place, passes)
        return study

    def _read(self, place: StudyPlace) -> Study | None:
        stored = self._store.read(place)
        return None if stored is None else stored.study

    def _first_request(self, name: str, where: Where) -> Mapping[str, Any] | None:
        """Return the request as submitted, or SageMaker's description if the queue has forgotten the job."""
        if self._jobs.queued.find(name) is not None:
            return self._jobs.queued.request(name)
        try:
            return described_by_sagemaker(name, self._clients.of("sagemaker", where))
        except ClientError as error:
            if error.response["Error"]["Code"] == _DENIED:  # who asks may still describe tuning jobs
                return None
            raise

    def _arns(self, request: Mapping[str, Any], where: Where) -> Arns:
        """Make ARNs in the stack's account, which is the account of the trials' role."""
        role = str((request.get("TrainingJobDefinition") or {}).get("RoleArn"))
        account = (role.split(":") + [""] * 5)[4]
        partition = self._session.get_partition_for_region(where.region)
        return Arns(prefix=f"arn:{partition}:sagemaker:{where.region}:{account}:")

    def _s3(self) -> Any:  # noqa: ANN401  boto3's
        return self._clients.of("s3", Where(region=self._jobs.api.region, endpoint_url=None))


def _taken(study: Study, body: Document, place: StudyPlace, *, now: datetime) -> InvalidArgumentError | None:
    """Say why the study that has the name does not answer the request; None if it does: it is continued.

    A study that has ended answers as long as the call may be a repetition whose first answer was lost.
    """
    if study.request != body:
        what = f"There is a tuning job {place.tuning_job} with another request ({place.url})."
    elif study.ended_at is not None and now - study.created_at > REPEATED_WITHIN:
        end = study.ended_at.astimezone(UTC)
        what = f"The tuning job {place.tuning_job} ended on {end:%Y-%m-%d %H:%M} UTC: {study.status}."
    else:
        return None
    return InvalidArgumentError(what, hint="Use another name.")


def _first_trial_taken(name: str, problems: tuple[FieldProblem, ...]) -> ConflictError:
    """Say that a study of this name was here: its object in S3 is gone, but its trials are not."""
    detail = f"the first trial of {name} cannot have its name: use another name for the tuning job"
    return ConflictError(Problem(status=409, title="Name taken", detail=detail, errors=problems))
