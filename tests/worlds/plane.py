"""One plane in one world: deployed, with a schedule, a queue and events, and people who submit."""

import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any
from unittest import mock

from trainmaster.adapters import threads
from trainmaster.bootstrap import Wiring
from trainmaster.core.jobs.model import Job
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import PoolState
from trainmaster.services.scheduler import group_commit
from trainmaster.settings import Settings

from local.worlds import World
from tests.builders import NOON
from tests.integration.conftest import TABLE
from tests.integration.messages import ACCOUNT, USER, proxy_event, request
from tests.worlds.account import Account, Calls
from tests.worlds.functions import Doorbell, Functions
from tests.worlds.sagemaker import SageMaker
from tests.worlds.timeline import Timeline

MINUTE = 60.0
QUEUE_SECONDS = 0.05
"""From a message's acceptance to its being read. Assumed."""


@dataclass(frozen=True, slots=True)
class _Actors:
    """Beside, in virtual time."""

    timeline: Timeline
    hands: int = threads.HANDS

    def __call__(self, tasks: Iterable[Callable[[], object]]) -> None:
        self.timeline.beside(tasks, at_most=self.hands)


class Plane:
    def __init__(
        self, world: World, policy: Mapping[str, Any], *, seed: int, late_seconds: float = 0.0
    ) -> None:
        """Set the scene, with functions whose clock is this far behind AWS's (negative: ahead)."""
        self.world = world
        self.late = timedelta(seconds=late_seconds)
        self.timeline = Timeline()
        self.draw = Random(seed)
        self.pools = [pool["name"] for pool in policy["pools"]]
        self.functions = Functions(self.timeline, self._fresh_process)
        self.doorbell = Doorbell(self.functions, delay=QUEUE_SECONDS)
        self.sagemaker = SageMaker(
            timeline=self.timeline, world=world, draw=Random(seed + 1), clock=self.clock, tell=self._tell
        )
        self.account = Account(
            timeline=self.timeline,
            world=world,
            draw=Random(seed + 2),
            clock=self.clock,
            sagemaker=self.sagemaker,
            ring=self._ring,
        )
        self.answers: list[int] = []
        """Of each submission."""
        self.names: list[str] = []
        self._scene = self._fresh_process()
        parse_policy(policy)
        policies = self._scene.policies
        policies.put(dict(policy), pools=self.pools, replaces=policies.current())

    def clock(self) -> datetime:
        return NOON + timedelta(seconds=self.timeline.now)

    def _fresh_process(self) -> Wiring:
        wiring = Wiring(
            Settings(
                table=TABLE,
                wake_up_queue_url="https://sqs.us-east-1.amazonaws.com/123456789012/doorbell",
                stack="trainmaster",
                account_id=ACCOUNT,
                admin_principal_arns=(USER,),
                retention_days=90,
                alarm_topic_arn="arn:aws:sns:us-east-1:123456789012:alarms",
                mail_topic_arn="arn:aws:sns:us-east-1:123456789012:mail",
            )
        )
        wiring.clock = lambda: self.clock() - self.late  # type: ignore[method-assign]
        wiring._client = self.account.client  # type: ignore[assignment,method-assign]
        wiring._lean = self._lean  # type: ignore[method-assign]
        turns: Any = wiring.turns
        turns._lock = self.timeline.lock()  # its threads are actors
        return wiring

    def _lean(self, service: str, *, only: Collection[str] = (), **settings: Any) -> Any:  # noqa: ARG002
        """Cut off at the same place as the others: what a lean client saves is no part of this."""
        return self.account.client(service, **settings)

    # ---- what runs by itself

    @contextmanager
    def deployed(self) -> Iterator[None]:
        """While it holds, functions are those of this plane, and nothing of the machine's clock or chance."""
        seeded = Random(self.draw.random())
        with ExitStack() as stack:
            for app in self.functions.apps:
                stack.enter_context(mock.patch.object(app, "wiring", self.functions.wiring))
                stack.callback(app.logger.setLevel, app.logger.level)
                app.logger.setLevel("CRITICAL")
            stack.enter_context(mock.patch("trainmaster.adapters.emf.write"))
            stack.enter_context(self._threads())
            stack.enter_context(mock.patch.object(group_commit, "Lock", self.timeline.lock))
            stack.enter_context(mock.patch.object(os, "urandom", seeded.randbytes))
            stack.enter_context(self.timeline.instead_of_the_clock())
            stack.callback(random.setstate, random.getstate())
            random.seed(seeded.random())
            self._each_minute(MINUTE)
            yield

    def _threads(self) -> AbstractContextManager[Any]:
        """What a function does beside each other is done by actors."""
        return mock.patch.object(threads, "beside", _Actors(self.timeline))

    def _each_minute(self, instant: float) -> None:
        def reconcile() -> None:
            self.functions.invoke_later("reconcile", {})
            self._each_minute(instant + MINUTE)

        self.timeline.at(instant, reconcile)

    def _tell(self, event: dict[str, Any]) -> None:
        self.functions.invoke_later("on_training_job_event", event)

    def _ring(self, bodies: list[str]) -> None:
        life = self.timeline.life
        self.doorbell.send(bodies, by="-" if life is None else life.belongs_to.function)

    # ---- what people do

    def submit(self, name: str, *, at: float, seconds: float | None, **changes: Any) -> None:
        """Submit by the REST API at that instant.

        Args:
            name: The job's name.
            at: Instant of the call.
            seconds: How long it trains; None: until somebody ends it.
            changes: Parts of the request that differ; None leaves one out.
        """
        self.names.append(name)
        if seconds is not None:
            self.sagemaker.run_seconds[name] = seconds
        body = {part: given for part, given in request(name, **changes).items() if given is not None}
        event = proxy_event("POST", "/add-job", body)

        def over(answer: Any, error: BaseException | None) -> None:
            self.answers.append(0 if error is not None else answer["statusCode"])

        self.timeline.at(at, partial(self.functions.invoke, "api", event, over))

    def world_becomes(self, world: World) -> None:
        self.world = self.sagemaker.world = self.account.world = world

    def forget(self) -> None:
        """What was counted so far: the scene is set."""
        self.account.calls = Calls()
        self.functions.forget()

    # ---- what is asked about it

    def pool_state(self, pool: str) -> PoolState:
        return self._scene.reader.pool_state(pool)

    def jobs(self) -> list[Job]:
        found = (self._scene.reader.job(name) for name in self.names)
        return [job for job in found if job is not None]

    def states(self) -> dict[str, int]:
        counted: dict[str, int] = {}
        for job in self.jobs():
            counted[job.state.value] = counted.get(job.state.value, 0) + 1
        return dict(sorted(counted.items()))

    def facts(self) -> dict[str, Any]:
        return {
            "simulated_minutes": round(self.timeline.now / MINUTE, 1),
            "states": self.states(),
            "answers": {str(status): self.answers.count(status) for status in sorted(set(self.answers))},
            "calls": self.account.calls.as_json(),
            "invocations": {name: one.as_json() for name, one in self.functions.records.items()},
            "killed": self.functions.killed,
        }
