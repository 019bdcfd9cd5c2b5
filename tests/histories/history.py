"""One history: dice that decide who moves, what happens outside, and what goes wrong."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from trainmaster.api.request_context import Answer
from trainmaster.core.errors import JobConflictError, UnavailableError
from trainmaster.core.jobs.model import JobState

from tests.builders import A, B, minutes
from tests.histories.drawn import (
    CONDITIONS,
    ENDS,
    ENDS_OF_STOPPING,
    FAILURES,
    REFUSALS,
    document_of,
    request_of,
    roomy,
    with_parents,
)
from tests.histories.stage import CrashError, Fault, Process, Stage
from tests.histories.world import World

STEPS = 160
SETTLED = 40
"""Rounds in which everything that was ever submitted must come to its end once faults stop."""
LIFE = timedelta(seconds=120)
"""No function lives longer. Source: the template, Timeout of the scheduler."""
MOST_PROCESSES = 4
MOST_JOBS = 6


@dataclass(slots=True)
class History:
    seed: int
    stage: Stage
    tell: Callable[[str], None] = lambda _: None
    """Gets a line for each step."""
    steps: int = STEPS
    dice: random.Random = field(init=False)
    world: World = field(init=False)
    moves: tuple[Callable[[], None], ...] = field(init=False)
    processes: list[tuple[Process, Any]] = field(default_factory=list)
    """With the instant of their start."""
    events: list[str] = field(default_factory=list)
    """Training jobs whose news is under way."""
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.world = World(document=document_of(self.dice), stage=self.stage)
        self.moves = (
            *[self.submit] * 4,
            *[self.answer_the_door] * 8,
            *[self.deliver] * 5,
            *[self.train] * 4,
            *[self.end] * 2,
            *[self.interrupt] * 2,
            *[self.reconcile] * 2,
            self.cancel,
            self.patch,
            self.refuse,
            self.unmanaged_event,
            *[self.time_passes] * 2,
            self.change_policy,
            self.meddle,
            self.write_checkpoint,
        )

    def play(self) -> None:
        for _ in range(self.steps):
            if self.processes and self.dice.random() < 0.6:
                self.move_one()
            else:
                self.dice.choice(self.moves)()
            self.world.watch.look()
            self.look()

    def look(self) -> None:
        """What must hold besides after each step, in histories of a particular kind."""

    # ---- processes

    def move_one(self) -> None:
        process, _ = self.dice.choice(self.processes)
        self.stage.move(process, calls=self.dice.choice([1, 1, 2, 3, 6, 30]))
        self.tell(f"   {process.name}: call {process.calls}{', over' if process.done else ''}")
        self._forget_the_dead()

    def start(self, name: str, act: Callable[[], Any]) -> None:
        if len(self.processes) >= MOST_PROCESSES:
            self.move_one()
            return
        process = Process(name=name, act=act, fault=self._fault())
        self.processes.append((process, self.world.now))
        self.tell(f"{name} begins{f', {process.fault}' if process.fault else ''}")

    def _fault(self) -> Fault | None:
        if self.dice.random() < 0.75:
            return None
        error = self.dice.choice([CrashError, CrashError, UnavailableError])
        return Fault(at=self.dice.randint(0, 14), after=self.dice.random() < 0.5, error=error)

    def _forget_the_dead(self) -> None:
        self.processes = [one for one in self.processes if not one[0].done]

    def finish_all(self) -> None:
        while self.processes:
            process, _ = self.dice.choice(self.processes)
            self.stage.move(process, calls=self.dice.choice([1, 3, 9]))
            self._forget_the_dead()

    # ---- what users and triggers do

    def submit(self) -> None:
        if len(self.names) >= MOST_JOBS:
            return
        name = f"job{len(self.names)}"
        self.names.append(name)
        request = self._request(name)
        self.start(f"submit {name}", lambda: self.world.submit(request))

    def _request(self, name: str) -> dict[str, Any]:
        request = request_of(name, self.dice, self.world.document)
        return with_parents(request, self.dice, [other for other in self.names if other != name])

    def answer_the_door(self) -> None:
        """A ring is delivered at least once; passes run at any time besides."""
        woken = self.world.wake_ups.woken
        if woken and self.dice.random() < 0.9:
            woken.clear()
        self.start("pass", self.world.run_pass)

    def deliver(self) -> None:
        if not self.events:
            return
        name = self.dice.choice(self.events)
        if self.dice.random() < 0.7:  # else it comes again
            self.events.remove(name)
        self.start(f"event of {name}", lambda: self.world.hear(name))

    def unmanaged_event(self) -> None:
        """News of any training job there ever was."""
        if self.world.sagemaker.jobs:
            name = self.dice.choice(list(self.world.sagemaker.jobs))
            self.start(f"late event of {name}", lambda: self.world.hear(name))

    def reconcile(self) -> None:
        self.start("reconcile", self.world.reconcile)

    def cancel(self) -> None:
        if not self.names:
            return
        name = self.dice.choice(self.names)

        def act() -> None:
            answer = self.world.cancel(name)
            if isinstance(answer, Answer):
                self.world.watch.accepted_stops.add(name)

        self.start(f"cancel {name}", act)

    def patch(self) -> None:
        known = [name for name in self.names if name in self.world.tables.jobs]
        if not known:
            return
        name = self.dice.choice(known)
        held, priority = self.world.job(name).state is not JobState.HELD, self.dice.randint(0, 4)
        wishes: list[dict[str, Any]] = [
            {"held": held},
            {"priority": priority},
            {"held": held, "priority": priority},
            {"after": None},
            {"after": f"{self.dice.choice(CONDITIONS)}{self.dice.choice(known)}", "held": held},
        ]
        wish = self.dice.choice(wishes)
        self.start(f"patch {name} {wish}", lambda: self.world.patch(name, **wish))

    def change_policy(self) -> None:
        if self.dice.random() < 0.4:
            paused = not self.world.tables.policy.paused
            self.start(f"pause {paused}", lambda: self.world.pause(paused))
            return
        pool = self.world.document["pools"][0]
        if "quotas" in pool:
            return
        changed = {
            **pool,
            "capacity": {A: self.dice.choice([0, 1, 2, 3])} | ({B: 1} if B in pool["capacity"] else {}),
        }
        document = {**self.world.document, "pools": [changed]}
        self.start(f"capacity {changed['capacity']}", lambda: self.world.change_policy(document))

    # ---- what happens outside

    def train(self) -> None:
        for name in self._some_live():
            if self.world.sagemaker.jobs[name].secondary in ("Starting", "Interrupted"):
                self.world.sagemaker.train(name)
                self._news(name, "trains")

    def interrupt(self) -> None:
        """SageMaker takes spot instances away."""
        for name, job in self.world.sagemaker.live().items():
            if job.is_spot and job.secondary == "Training":
                self.world.sagemaker.interrupt(name)
                self._news(name, "is interrupted")

    def end(self) -> None:
        for name in self._some_live()[:1]:
            stopping = self.world.sagemaker.jobs[name].status == "Stopping"
            self._end(name, self.dice.choice(ENDS_OF_STOPPING if stopping else ENDS))

    def _end(self, name: str, end: str) -> None:
        sagemaker = self.world.sagemaker
        if end == "CapacityError":
            sagemaker.end(name, "Failed", reason="CapacityError: none")
        elif end == "MaxRuntimeExceeded":
            is_spot = sagemaker.jobs[name].is_spot and self.dice.random() < 0.5
            sagemaker.end(name, "Stopped", secondary="MaxWaitTimeExceeded" if is_spot else end)
        else:
            sagemaker.end(name, end, reason=self.dice.choice(FAILURES) if end == "Failed" else None)
        self._news(name, end)

    def _news(self, name: str, what: str) -> None:
        """Its event is lost, comes once, or twice."""
        times = self.dice.choice([0, 1, 1, 1, 2])
        self.events += [name] * times
        self.tell(f"{name} {what}, {times} events")

    def refuse(self) -> None:
        if self.dice.random() < 0.25:
            self.world.sagemaker.lose_answers = 1
        else:
            self.world.sagemaker.refuse = [
                self.dice.choice(REFUSALS)() for _ in range(self.dice.choice([1, 2]))
            ]
        self.tell(f"the next creates: {self.world.sagemaker.refuse}")

    def meddle(self) -> None:
        """Somebody stops or deletes a training job in the console."""
        for name in self._some_live()[:1]:
            self.world.sagemaker.stop(name)
            self.tell(f"somebody stops {name}")
        unrecorded = self._unrecorded()
        jobs = self.world.sagemaker.jobs.values()
        over = [one for one in jobs if not one.is_live and one.warm is None and one.name not in unrecorded]
        if over and self.dice.random() < 0.3:
            gone = self.dice.choice(over)
            del self.world.sagemaker.jobs[gone.name]
            self.tell(f"somebody deletes {gone.name}")

    def _unrecorded(self) -> set[str]:
        """Training jobs that nobody has noted yet: deleted now, they never were, and start again."""
        lives = [job.live for job in self.world.tables.jobs.values() if job.live is not None]
        return {live.training_job_name for live in lives if live.training_job_arn is None}

    def write_checkpoint(self) -> None:
        for name in self._some_live():
            self.world.checkpoints.written[f"s3://bucket/checkpoints/{name}"] = self.world.now

    def time_passes(self) -> None:
        """Functions die of old age; a claim's lease outlives its function."""
        passed = self.dice.choice([timedelta(seconds=20), minutes(1), minutes(1), minutes(6)])
        for process, since in self.processes:
            if self.world.now + passed - since >= LIFE:
                self.stage.kill(process)
        self._forget_the_dead()
        self.world.now += passed
        self.tell(f"{passed} pass")

    def _some_live(self) -> list[str]:
        live = sorted(self.world.sagemaker.live())
        return self.dice.sample(live, min(len(live), self.dice.choice([1, 2])))

    # ---- the end

    def settle(self) -> None:
        """No more faults: all that lives ends, nobody says so but the reconciler, and everything must end."""
        self.finish_all()
        world = self.world
        world.sagemaker.refuse, world.sagemaker.lose_answers = [], 0
        world.pause(paused=False)
        world.change_policy(roomy(world.document))
        for _ in range(SETTLED):
            for name in self.names:
                if name in world.tables.jobs and isinstance(world.patch(name, held=False), JobConflictError):
                    world.patch(name, after=None, held=False)
            for name, job in world.sagemaker.live().items():
                self._end(name, "Stopped" if job.status == "Stopping" else "Completed")
            world.now += minutes(16)  # leases, back-offs, limits and holds are over
            for act in self.settling():
                self.stage.finish(self._quiet(act))
            world.watch.look()
            if self.is_over():
                break
        for _ in range(3):  # holds and warm pools of the last ones
            world.now += minutes(16)
            self.stage.finish(self._quiet(world.run_pass))
        world.watch.settled()

    def is_over(self) -> bool:
        """Whether nothing is left to wait for."""
        return all(job.is_final for job in self.world.tables.jobs.values())

    def settling(self) -> tuple[Callable[[], Any], ...]:
        """What every round of settling does."""
        return (self.world.reconcile, self.world.run_pass)

    def _quiet(self, act: Callable[[], Any]) -> Process:
        return Process(name="settling", act=act)
