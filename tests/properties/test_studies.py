"""Studies whose processes die between any two calls, meet and are stopped: no trial twice, none lost."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.errors import ConflictError, PolicyViolationError, Problem
from trainmaster_client.tuning import proposals
from trainmaster_client.tuning.search_space import Parameters
from trainmaster_client.tuning.study import Seen, Study, TrialStatus
from trainmaster_client.tuning.study_runs import StudyPasses
from trainmaster_client.tuning.study_store import StudyPlace, StudyStore
from trainmaster_client.tuning.tuning_answers import objective_counters, status_counters
from trainmaster_client.tuning.tuning_requests import TuningPlan

from tests.builders import NOON
from tests.unit.client.tuning.requests import choices, request

SCHEDULES = 150
STEPS = 40
BUDGET, AT_ONCE = 6, 2
PLACE = StudyPlace.below("s3://bucket/out", "tune")


class DiedError(BaseException):
    """The process ends here."""


@dataclass(slots=True)
class World:
    """S3 and the queue. Before and after each effect something may happen."""

    chance: Random
    now: datetime = NOON
    stored: bytes | None = None
    version: int = 0
    jobs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    ended: dict[str, Seen] = field(default_factory=dict)
    submissions: int = 0
    most_live: int = 0
    between: Callable[[], None] = lambda: None

    def get_object(self, **_: str) -> dict[str, Any]:
        if self.stored is None:
            raise _refused("NoSuchKey", "GetObject")
        return {"Body": io.BytesIO(self.stored), "ETag": str(self.version)}

    def put_object(self, *, Body: bytes, **options: str) -> dict[str, Any]:  # noqa: N803  boto3's
        self.between()
        is_there = self.stored is not None
        if ("IfNoneMatch" in options and is_there) or options.get("IfMatch", str(self.version)) != str(
            self.version
        ):
            raise _refused("PreconditionFailed", "PutObject")
        self.stored, self.version = Body, self.version + 1
        answer = {"ETag": str(self.version)}
        self.between()
        return answer

    def look(self, name: str, metric: str) -> Seen | None:
        assert metric == "loss"
        return None if name not in self.jobs else self.ended.get(name, Seen())

    def submit(self, asked: Mapping[str, Any]) -> None:
        self.between()
        name = asked["TrainingJobName"]
        if name not in self.jobs:
            self.jobs[name] = asked
            self.submissions += 1
        assert self.jobs[name] == asked, "the same name with another request"
        self.most_live = max(self.most_live, len(self.live))
        self.between()

    def cancel(self, name: str) -> None:
        self.between()
        if name in self.ended:
            raise ConflictError(Problem(status=409, title="Over", detail=""))
        self.ended[name] = Seen(status=TrialStatus.STOPPED, ended_at=self.now)
        self.between()

    @property
    def live(self) -> list[str]:
        return [name for name in self.jobs if name not in self.ended]

    @property
    def passes(self) -> StudyPasses:
        return StudyPasses(store=StudyStore(lambda: self), queue=self, now=lambda: self.now)

    @property
    def study(self) -> Study:
        stored = StudyStore(lambda: self).read(PLACE)
        assert stored is not None
        return stored.study

    def end_one(self) -> None:
        if self.live:
            name = self.chance.choice(self.live)
            status = self.chance.choice(
                [TrialStatus.COMPLETED] * 4 + [TrialStatus.FAILED, TrialStatus.STOPPED]
            )
            value = self.chance.random() if status is TrialStatus.COMPLETED else None
            self.ended[name] = Seen(status=status, ended_at=self.now, value=value)


def _refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, operation)


def started(seed: int) -> World:
    world = World(chance=Random(seed))
    limits = {"MaxNumberOfTrainingJobs": BUDGET, "MaxParallelTrainingJobs": AT_ONCE}
    grid = choices(a=["1", "2"], b=["x", "y", "z"])
    asked = request(
        strategy=world.chance.choice(["Grid", "Random", "Bayesian"]),
        ParameterRanges=grid,
        ResourceLimits=limits,
    )
    study = Study(request=asked, created_at=NOON, modified_at=NOON)
    StudyStore(lambda: world).create(PLACE, study, kms_key=None)
    return world


def disturb(world: World) -> None:
    """Between any two effects a process may die, or another one make a whole pass."""

    def between() -> None:
        world.between = lambda: None
        happens = world.chance.random()
        if happens < 0.2:
            raise DiedError
        if 0.3 < happens < 0.6:
            world.end_one()
        if happens < 0.5:
            world.passes.step(PLACE)
        world.between = between

    world.between = between


def play(world: World, *, stops: bool) -> None:
    for _ in range(STEPS):
        world.now += timedelta(seconds=1)
        disturb(world)
        try:
            if stops and world.chance.random() < 0.05:
                world.passes.stop(PLACE)
            elif world.chance.random() < 0.3:
                world.end_one()
            else:
                world.passes.step(PLACE)
        except DiedError:
            continue
        finally:
            world.between = lambda: None


def finish(world: World) -> Study:
    """Somebody attaches, and nothing is in the way any more."""
    for _ in range(200):
        world.now += timedelta(seconds=30)
        world.end_one()
        study = world.passes.step(PLACE)
        assert study is not None
        if study.ended_at is not None:
            return study
    raise AssertionError("the study never ends")


def by_what_is_known(plan: TuningPlan, study: Study, number: int) -> Parameters:
    """In the place of Optuna: another look at the trials proposes another thing."""
    known = [(one.seen.status.value, one.seen.value) for one in study.trials]
    return {"a": f"{plan.name} {number} {known}", "b": "x"}


@pytest.fixture(autouse=True)
def quick_bayesian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposals, "_bayesian", by_what_is_known)


@pytest.mark.parametrize("stops", [False, True], ids=["to its end", "stopped at some time"])
def test_whatever_dies_no_trial_is_submitted_twice_and_none_is_lost(*, stops: bool) -> None:
    for seed in range(SCHEDULES):
        world = started(seed)
        try:
            play(world, stops=stops)
            check(world, finish(world), stops=stops)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def check(world: World, study: Study, *, stops: bool) -> None:
    assert world.submissions == len(world.jobs) <= BUDGET
    assert world.most_live <= AT_ONCE
    assert set(world.jobs) <= {one.name for one in study.trials}
    assert world.live == []
    assert len(study.trials) <= BUDGET
    assert sum(status_counters(study.trials).values()) == len(study.trials)
    assert sum(objective_counters(study.trials).values()) == len(study.trials)
    for one in study.trials:
        if one.name in world.ended:
            assert one.seen == world.ended[one.name]
    if not stops:
        grid = {json.dumps(one.parameters) for one in study.trials}
        is_grid = study.request["HyperParameterTuningJobConfig"]["Strategy"] == "Grid"
        assert len(study.trials) == BUDGET
        assert len(grid) == BUDGET or not is_grid


def test_a_trial_that_the_policy_refuses_has_failed_and_the_others_go_on() -> None:
    world = started(1)
    admitted = world.submit
    refused = PolicyViolationError(Problem(status=422, title="Not allowed", detail="too many GPUs"))

    def submit(asked: Mapping[str, Any]) -> None:
        if "-002-" in asked["TrainingJobName"]:
            raise refused
        admitted(asked)

    queue = type("Queue", (), {"submit": staticmethod(submit), "look": world.look, "cancel": world.cancel})()
    passes = StudyPasses(store=StudyStore(lambda: world), queue=queue, now=lambda: world.now)
    for _ in range(60):
        world.now += timedelta(seconds=30)
        passes.step(PLACE)
        world.end_one()
    assert world.study.ended_at is not None
    assert world.study.trials[1].seen.status is TrialStatus.FAILED
    assert "too many GPUs" in world.study.trials[1].seen.failure
    assert len(world.study.trials) == BUDGET
