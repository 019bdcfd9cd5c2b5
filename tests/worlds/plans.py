"""A training plan of two windows in the harsh world, seen by functions whose clock is off.

What SageMaker saw is judged, by its own clock: from 30 minutes before the end of a window nothing may run on
the plan, and at no instant more than it has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from trainmaster.core.policy.plan_windows import ENDS_BEFORE
from trainmaster.core.request.options import PlanUse

from local.worlds import HARSH
from tests.builders import NOON, A
from tests.integration.sagemaker_stub import TrainingJob
from tests.worlds.plane import MINUTE, Plane
from tests.worlds.played import Played

SPRING = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/spring"
WINDOWS = ((20, 120), (180, 340))
"""Minutes from the beginning between which the plan has instances."""
MINUTES = 420
LONG = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
SHORT = {"StoppingCondition": {"MaxRuntimeInSeconds": 1200}}
DOES_NOT_SAVE = {"CheckpointConfig": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    late_seconds: float = 300.0
    """How far the functions' clock is behind AWS's."""
    drain: str = "10m"
    on_plan: int = 4
    on_demand: int = 2
    jobs: int = 4
    """Jobs of each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Jobs that use the plan in one way."""

    name: str
    use: PlanUse
    minutes: int
    request: dict[str, Any]


KINDS = (
    _Kind(name="only", use=PlanUse.ONLY, minutes=70, request=LONG),
    _Kind(name="first", use=PlanUse.FIRST, minutes=75, request=LONG),
    _Kind(name="brief", use=PlanUse.ONLY, minutes=12, request=SHORT | DOES_NOT_SAVE),
    _Kind(name="stays", use=PlanUse.NEVER, minutes=20, request=LONG | DOES_NOT_SAVE),
)
"""``brief`` does not save, and is certain to have ended in time; ``stays`` never does, on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A training job as SageMaker saw it."""

    name: str
    begin: datetime
    end: datetime
    is_on_plan: bool

    @classmethod
    def of(cls, name: str, job: TrainingJob, *, until: datetime) -> "_Run":
        on_plan = "TrainingPlanArn" in job.request["ResourceConfig"]
        opened = (NOON + timedelta(minutes=begin) for begin, _ in WINDOWS)
        waits_for = min((at for at in opened if at >= job.created), default=job.created)
        in_window = any(
            _closes(begin, end)[0] <= job.created < _closes(begin, end)[1] for begin, end in WINDOWS
        )
        begin = waits_for if on_plan and not in_window else job.created  # it is pending until a window opens
        return cls(name=name, begin=begin, end=job.ended or until, is_on_plan=on_plan)


def plans(load: Load, *, seed: int) -> Played:
    """Jobs of all kinds, through both windows and on demand beside them."""
    plane = Plane(HARSH, _policy(load), seed=seed, late_seconds=load.late_seconds)
    plane.sagemaker.stub.plans["spring"] = _described(load)
    plane.sagemaker.plan_windows = [(begin * MINUTE, end * MINUTE) for begin, end in WINDOWS]
    with plane.deployed():
        for number in range(load.jobs):
            for kind in KINDS:
                _submit(plane, kind, number)
        plane.timeline.run(MINUTES * MINUTE)
    runs = [_Run.of(name, job, until=plane.clock()) for name, job in plane.sagemaker.stub.jobs.items()]
    return _judged(plane, load, runs)


def _submit(plane: Plane, kind: _Kind, number: int) -> None:
    tags = [{"Key": "trainmaster:plan", "Value": kind.use.value}]
    plane.submit(
        f"{kind.name}-x{number}",
        at=number * MINUTE,
        seconds=kind.minutes * MINUTE,
        Tags=tags,
        **kind.request,
    )


def _policy(load: Load) -> dict[str, Any]:
    plan = {"arn": SPRING, "drain": load.drain}
    return {"pools": [{"name": "main", "capacity": {A: load.on_demand}, "plans": [plan]}]}


def _described(load: Load) -> dict[str, Any]:
    """The plan as SageMaker describes it."""
    parts = [
        {
            "ReservedCapacityArn": f"{SPRING}-{number}",
            "InstanceType": A,
            "TotalInstanceCount": load.on_plan,
            "StartTime": NOON + timedelta(minutes=begin),
            "EndTime": NOON + timedelta(minutes=end),
            "Status": "Scheduled",
        }
        for number, (begin, end) in enumerate(WINDOWS)
    ]
    return {
        "TrainingPlanArn": SPRING,
        "TrainingPlanName": "spring",
        "Status": "Active",
        "TotalInstanceCount": load.on_plan,
        "ReservedCapacitySummaries": parts,
    }


# ---- what must hold


def _closes(begin: float, end: float) -> tuple[datetime, datetime]:
    """Return the instants between which a job may have instances of a window."""
    return NOON + timedelta(minutes=begin), NOON + timedelta(minutes=end) - ENDS_BEFORE


def _judged(plane: Plane, load: Load, runs: list[_Run]) -> Played:
    on_plan = [run for run in runs if run.is_on_plan]
    wasted = [job.name for job in plane.jobs() if job.spent.wasted or job.preemptions]
    facts = {
        "load": {name: getattr(load, name) for name in load.__slots__},
        "training_jobs": len(runs),
        "on_plan": len(on_plan),
        "in_each_window": [sum(_is_in(run, window) for run in on_plan) for window in WINDOWS],
        **plane.facts(),
    }
    played = Played(facts)
    played.check("nothing is on the plan outside of its windows", expected=[], actual=list(_outside(on_plan)))
    played.at_most("instances of the plan at any instant", load.on_plan, _most_at_once(on_plan))
    beside = [run for run in runs if not run.is_on_plan]
    played.at_most("instances on demand at any instant", load.on_demand, _most_at_once(beside))
    everything = load.jobs * len(KINDS)
    played.check("every job completes", expected={"completed": everything}, actual=plane.states())
    played.check("no window loses a step, or counts as a preemption", expected=[], actual=wasted)
    _goes_on(played, plane, runs)
    played.nothing_killed()
    return played


def _outside(runs: list[_Run]) -> Iterator[str]:
    for run in runs:
        if not any(
            begin <= run.begin and run.end <= end for begin, end in (_closes(*each) for each in WINDOWS)
        ):
            yield f"{run.name}: {run.begin:%H:%M:%S} to {run.end:%H:%M:%S}"


def _is_in(run: _Run, window: tuple[int, int]) -> bool:
    begin, end = _closes(*window)
    return begin <= run.begin < end


def _most_at_once(runs: list[_Run]) -> int:
    """Return the most jobs, of one instance each, that ran at an instant."""
    return max(
        (sum(run.begin <= at < run.end for run in runs) for at in [run.begin for run in runs]), default=0
    )


def _goes_on(played: Played, plane: Plane, runs: list[_Run]) -> None:
    """Check where jobs ran, by their tag, and that windows were closed on some that saved."""
    beside = {run.name.partition("-")[0] for run in runs if not run.is_on_plan}
    on_plan = {run.name.partition("-")[0] for run in runs if run.is_on_plan}
    played.check("kinds that ran on the plan", expected=["brief", "first", "only"], actual=sorted(on_plan))
    played.check("kinds that ran on demand", expected=["first", "stays"], actual=sorted(beside))
    again = [job.name.partition("-")[0] for job in plane.jobs() if job.attempt > 0]
    moved = {kind: again.count(kind) for kind in ("only", "first", "brief", "stays")}
    played.facts["resumed"] = moved
    played.check(
        "some jobs were saved at a closing, and resumed", expected="> 0", actual=moved, ok=bool(again)
    )
    others = [job.name for job in plane.jobs() if job.name.startswith(("brief", "stays")) and job.attempt > 0]
    played.check("no job that does not save was stopped", expected=[], actual=others)
