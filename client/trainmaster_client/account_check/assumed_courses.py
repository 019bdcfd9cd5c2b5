"""Assumptions of the code about how jobs behave over time (groups 5 to 10 of the guide)."""

from trainmaster_client.account_check import course_verdicts as verdicts
from trainmaster_client.account_check.facts import Fact, Look, Need, recorded

_ADAPTER = "trainmaster.adapters.sagemaker"
_START = "trainmaster.services.scheduler.start_protocol"
_DECISION = "trainmaster.core.lifecycle.decision"


def _stopped(phase: str, trial: str) -> Fact:
    return Fact(
        id=f"stop-{phase.lower()}",
        group=5,
        question=f"How does a job end that is stopped while {phase}?",
        assumes="TrainingJobStatus Stopped, SecondaryStatus Stopped",
        where=(_DECISION,),
        look=Look.TRIALS,
        judge=verdicts.stopped_in(phase, trial),
    )


_STOPS = (
    _stopped("Starting", "early"),
    _stopped("Downloading", "loading"),
    _stopped("Training", "hears"),
    Fact(
        id="stop-ended",
        group=5,
        question="What does Stop answer about a job that has ended?",
        assumes="a code for unknown (ValidationException): nothing to stop",
        where=(_ADAPTER,),
        look=Look.TRIALS,
        judge=recorded("stop_ended", verdicts.stop_ended),
    ),
    Fact(
        id="slot-free",
        group=5,
        question="How long after Stopped is seen does the quota count the instance?",
        assumes="not at all, or less than the minute between two passes",
        where=("trainmaster.services.scheduler.passes",),
        look=Look.SLOT,
        judge=recorded("slot", verdicts.slot_free),
        needs=(Need.QUOTA_LIST,),
    ),
)

_EVENTS = tuple(
    Fact(
        id=f"event-{what}",
        group=6,
        question=question,
        assumes=assumes,
        where=("trainmaster.services.observer", "trainmaster.services.unmanaged_jobs"),
        look=Look.EVENTS,
        judge=judge,
    )
    for what, question, assumes, judge in (
        (
            "number",
            "How many events does a change send?",
            "one of nearly each; never counted on",
            verdicts.event_number,
        ),
        (
            "order",
            "Do events of one job come in the order of its changes?",
            "in any order",
            recorded("events", verdicts.event_order),
        ),
        (
            "fields",
            "What does an event always have?",
            "TrainingJobName, TrainingJobStatus, SecondaryStatus",
            recorded("events", verdicts.event_fields),
        ),
        (
            "tags",
            "Do events have the job's tags?",
            "they may; a job of ours is known by its name",
            recorded("events", verdicts.event_tags),
        ),
        (
            "delay",
            "How long is an event on its way?",
            "up to 6 minutes; reconcile looks each minute anyway",
            recorded("events", verdicts.event_delay),
        ),
    )
)

_TRIALS = (
    Fact(
        id="statuses",
        group=7,
        question="Which statuses does a job go through?",
        assumes="none but those of the API's model",
        where=("trainmaster.core.jobs.observations", _DECISION),
        look=Look.TRIALS,
        judge=verdicts.statuses,
    ),
    Fact(
        id="billable",
        group=7,
        question="What is billed?",
        assumes="a job that trained: BillableTimeInSeconds above 0; one stopped while Starting: nothing",
        where=(_DECISION, "trainmaster.core.costs.ledger"),
        look=Look.TRIALS,
        judge=verdicts.billable,
    ),
    Fact(
        id="stop-grace",
        group=7,
        question="How long after SIGTERM does SIGKILL come?",
        assumes="120 s, within 15",
        where=("trainmaster.core.planning.preemption",),
        look=Look.TRIALS,
        judge=verdicts.ended("deaf", verdicts.stop_grace),
        needs=(Need.AWS_TIME,),
    ),
    Fact(
        id="exit-code",
        group=7,
        question="How does FailureReason say the exit code of the container?",
        assumes='as "exit code: 3" in any case, which the diagnosis reads',
        where=("trainmaster.core.diagnosis.exit_codes",),
        look=Look.TRIALS,
        judge=verdicts.ended("fails", verdicts.exit_code),
    ),
    Fact(
        id="upload",
        group=7,
        question="Are output and checkpoints in S3 when a job has ended, and when it was stopped?",
        assumes="both, also what was written after SIGTERM",
        where=("trainmaster.adapters.s3_checkpoints", "trainmaster.core.monitoring.checkpoints"),
        look=Look.UPLOADS,
        judge=recorded("uploads", verdicts.upload),
    ),
)

_WARM = (
    Fact(
        id="warm-quota",
        group=8,
        question="What becomes of KeepAlivePeriodInSeconds with a warm-pool quota of 0, and above?",
        assumes="refused (then sent once without it), or taken without a pool or with one",
        where=(_START, _ADAPTER),
        look=Look.WARM,
        judge=recorded("warm", verdicts.warm_quota),
    ),
    Fact(
        id="warm-match",
        group=8,
        question="Does a job that asks for the same take the warm pool?",
        assumes="it does: the pool is Reused or InUse, named with the job",
        where=("trainmaster.core.planning.warm_pools",),
        look=Look.WARM,
        judge=recorded("warm", verdicts.warm_match),
    ),
    Fact(
        id="warm-release",
        group=8,
        question="Does UpdateTrainingJob with 0 s end a warm pool?",
        assumes="it is Terminated within a minute",
        where=("trainmaster.services.scheduler.executor",),
        look=Look.WARM,
        judge=recorded("warm", verdicts.warm_release),
    ),
    Fact(
        id="warm-none",
        group=8,
        question="What does UpdateTrainingJob answer about a job without a warm pool?",
        assumes="a code for unknown (ValidationException): nothing to keep",
        where=(_ADAPTER,),
        look=Look.WARM,
        judge=recorded("warm", verdicts.warm_none),
    ),
)

_ACCELERATED = (
    Fact(
        id="gpu-metrics",
        group=9,
        question="How late do GPU metrics come?",
        assumes="within 5 minutes of Training",
        where=("trainmaster.core.monitoring.alarms",),
        look=Look.GPU,
        judge=verdicts.after_training("metric_seconds", verdicts.LONGEST_METRIC_SECONDS),
        needs=(Need.GPU,),
    ),
    Fact(
        id="gpu-alarm",
        group=9,
        question="Does an alarm on them go off?",
        assumes="within 10 minutes of Training",
        where=("trainmaster.adapters.cloudwatch_alarms",),
        look=Look.GPU,
        judge=verdicts.after_training("alarm_seconds", verdicts.LONGEST_ALARM_SECONDS),
        needs=(Need.GPU,),
    ),
    Fact(
        id="pending-end",
        group=10,
        question="How does a job end whose pending time ran out?",
        assumes="Stopped or Failed in whatever words, never trained, nothing billed, after what was sent",
        where=(_DECISION,),
        look=Look.STARVE,
        judge=verdicts.ended("starved", verdicts.pending_end),
        needs=(Need.GPU, Need.STARVE),
    ),
)


COURSES: tuple[Fact, ...] = (*_STOPS, *_EVENTS, *_TRIALS, *_WARM, *_ACCELERATED)
