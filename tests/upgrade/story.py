"""The scene: an earlier stack with a job in each state is upgraded and rolled back under way."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trainmaster_client.api import ApiClient, find_api_url

from demos.deploy_check import callers, looks
from demos.deploy_check.container import CHECKPOINT, END
from demos.deploy_check.jobs import POLICY, CheckedJob
from demos.deploy_check.stack import ADMIN, BUCKET
from demos.deploy_check.world import World, opened
from demos.stage.evidence import Bucket, log_lines
from tests.upgrade.commits import ONE_ORDER, is_since, unpack
from tests.upgrade.old_client import OldClient

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]
States = dict[str, list[Any]]
"""State and number of attempts by the job's name."""

PATIENCE_SECONDS = 180.0
"""One wait of the scene; the schedule alone takes a minute."""
LOOK_SECONDS = 0.5
MINUTES = 2
"""Runs of the reconciler after each deployment: what would end a job by mistake does so in the first two."""
RECONCILE = "ReconcileFunction"
FUNCTIONS = ("api", "schedule", "on-training-job-event", "on-idle-alarm", "reconcile")
"""Of both stacks."""
_STEADY = CheckedJob(name="steady", priority=2)
_TAKEN = CheckedJob(name="taken", priority=1)
_URGENT = CheckedJob(name="urgent", priority=9)
_WAITS = CheckedJob(name="waits", priority=1)
_HELD = CheckedJob(name="held", priority=1)
_DONE = CheckedJob(name="done", priority=1)
_GONE = CheckedJob(name="gone", priority=0)
_NEW = CheckedJob(name="of-the-new", priority=1)
_BACK = CheckedJob(name="rolled-back", priority=1)


@dataclass(slots=True)
class Scene:
    """One upgrade, and the way back."""

    world: World
    old: Path
    """The checkout of the earlier commit."""
    say: Callable[[str], None]
    facts: Document
    """Filled as it goes."""
    finds_the_waiting: bool
    """The earlier release looks for waiting jobs where today's leaves them; else they are held meanwhile."""
    _api: ApiClient | None = None
    _user: "Session | None" = None
    _names: list[str] = field(default_factory=list)

    @property
    def api(self) -> ApiClient:
        assert self._api is not None
        return self._api

    def play(self) -> None:
        self._begin()
        self._note("left")
        self._upgrade()
        self._work_on_the_new()
        self._roll_back()
        self._work_on_the_old()
        self._note("ends")
        self.facts["errors"] = {
            name: found for name in FUNCTIONS if (found := looks.errors_of(self.world.session, name))
        }

    def _begin(self) -> None:
        """A job in each state that lasts, all of them made by the earlier code."""
        deployment = self.world.deployment
        deployment.build(self.old)
        self._deploy("earlier")
        self.world.session.client("s3").create_bucket(Bucket=BUCKET)
        self.api.put_policy(POLICY)
        self._submit(_DONE)
        self._end(_DONE)
        self._until("the first job completed", lambda: self._state(_DONE) == "completed")
        self._submit(_TAKEN, _STEADY)
        self._until(
            "two jobs running, one with a checkpoint",
            lambda: self._all("running", _TAKEN, _STEADY) and self._has_checkpoint(_TAKEN),
        )
        self._submit(_WAITS, _HELD, _GONE, _URGENT)
        self.api.change(_HELD.name, held=True)
        self.api.cancel(_GONE.name)
        self._until(
            "one preempted by the urgent one",
            lambda: self._all("running", _STEADY, _URGENT) and self._state(_TAKEN) == "preempted",
        )

    def _upgrade(self) -> None:
        """As the guide says: pause, deploy, look, resume."""
        self.api.set_paused(True)
        self.world.deployment.build()
        self._deploy("new")
        self._note("upgraded")
        self._minutes_pass()
        self._note("upgraded_later")
        self.facts["policy"] = {"put": POLICY, "shown": self.api.policy()}
        self.facts["repairs"] = [self._repair(apply=apply) for apply in (True, False)]
        self.api.set_paused(False)
        self._minutes_pass()
        self._note("resumed")

    def _work_on_the_new(self) -> None:
        stored = Bucket().hashes(_TAKEN.checkpoints)
        self._submit(_NEW)
        self.facts["old_client"] = self._old_client()
        self._end(_STEADY)
        self._until("the preempted job resumed", lambda: self._all("running", _URGENT, _TAKEN))
        training_job = self.api.job(_TAKEN.name)["attempts"][-1]["training_job_name"]
        logs = self.world.session.client("logs")
        self._until("its first log line", lambda: bool(self._lines(training_job)))
        self.facts["resumption"] = {
            "stored": stored[f"{_TAKEN.checkpoints}/{CHECKPOINT}"],
            "first_line": log_lines(logs, training_job)[0],
        }

    def _roll_back(self) -> None:
        """As the guide says: pause, hold who waits where that is needed, deploy, resume."""
        self.api.set_paused(True)
        self._hold(*(() if self.finds_the_waiting else (_WAITS, _NEW)))
        self._note("before_rollback")
        self.world.deployment.build(self.old)
        self._deploy("rolled_back")
        self._minutes_pass()
        self._note("rolled_back")
        self.api.set_paused(False)

    def _work_on_the_old(self) -> None:
        self._submit(_BACK)
        held = [name for name, (state, _) in self._states().items() if state == "held"]
        for name in held:
            self.api.change(name, held=False)
        for job in (_URGENT, _TAKEN, _WAITS, _HELD, _NEW, _BACK):
            self._end(job)
        self._until(
            "every job ended",
            lambda: {state for state, _ in self._states().values()} <= {"completed", "stopped"},
        )

    def _hold(self, *jobs: CheckedJob) -> None:
        for job in jobs:
            self.api.change(job.name, held=True)

    def _note(self, when: str) -> None:
        self.facts[when] = states = self._states()
        self.say(f"{when.replace('_', ' ')}: {states}")

    def _deploy(self, name: str) -> None:
        deployment = self.world.deployment
        self.say(f"sam deploy: the {name.replace('_', ' ')} stack ...")
        deployment.deploy()
        deployment.add_rights()
        self.facts.setdefault("deployments", {})[name] = deployment.status()
        if self._user is None:
            self._user = callers.make_user(self.world.session, ADMIN, may_invoke=True)
        # The emulator makes a new API where routes were added; AWS keeps the address.
        self._api = ApiClient(self._url(), self._user)

    def _repair(self, *, apply: bool) -> Document:
        self.api.start_repair(apply=apply)
        self._minutes_pass()
        self._until("the repair done", lambda: self.api.repair()["finished_at"] is not None)
        found = self.api.repair()
        return {key: found[key] for key in ("apply", "jobs_read", "differences", "set_aside")}

    def _old_client(self) -> list[Document]:
        assert self._user is not None
        keys = self._user.get_credentials()
        assert keys is not None
        own = {"AWS_ACCESS_KEY_ID": keys.access_key, "AWS_SECRET_ACCESS_KEY": keys.secret_key}
        reach = {"TRAINMASTER_API_URL": self._url()}
        client = OldClient(
            checkout=self.old,
            folder=self.world.folder,
            environment=self.world.ministack.environment() | own | reach,
        )
        commands = (
            ("queue", "--json"),
            ("queue", "--state", "completed"),
            ("show", _TAKEN.name),
            ("why", _WAITS.name),
            ("history", _DONE.name),
            ("pools",),
            ("usage",),
            ("policy", "show"),
            ("violations",),
            ("priority", _HELD.name, "0"),
        )
        return [client.told(*words) for words in commands]

    def _submit(self, *jobs: CheckedJob) -> None:
        for job in jobs:
            self.api.add_job(job.request(self._orders(job)))
            self._names.append(job.name)

    def _end(self, job: CheckedJob) -> None:
        orders = self._orders(job)
        orders.mkdir(exist_ok=True)
        (orders / END).touch()

    def _minutes_pass(self) -> None:
        """What the schedule does each minute, now."""
        functions = self.world.session.client("lambda")
        name = self.world.deployment.name_of(RECONCILE)
        for _ in range(MINUTES):
            done = functions.invoke(FunctionName=name, Payload=json.dumps({}))
            payload = done["Payload"].read().decode()
            if "FunctionError" in done:
                raise TimeoutError(f"{name} failed: {payload}")

    def _lines(self, training_job: str) -> list[str]:
        logs = self.world.session.client("logs")
        try:
            return log_lines(logs, training_job)
        except logs.exceptions.ResourceNotFoundException:  # made with the first line
            return []

    def _states(self) -> States:
        views = {name: self.api.job(name, estimate=False) for name in self._names}
        return {name: [view["state"], len(view["attempts"])] for name, view in views.items()}

    def _state(self, job: CheckedJob) -> str:
        return str(self.api.job(job.name, estimate=False)["state"])

    def _all(self, state: str, *jobs: CheckedJob) -> bool:
        return all(self._state(job) == state for job in jobs)

    def _has_checkpoint(self, job: CheckedJob) -> bool:
        return f"{job.checkpoints}/{CHECKPOINT}" in Bucket().hashes(job.checkpoints)

    def _orders(self, job: CheckedJob) -> Path:
        return self.world.folder / f"orders-{job.name}"

    def _url(self) -> str:
        found = find_api_url(None, self.world.session, env={})
        return callers.gateway_url(found, self.world.ministack)

    def _until(self, what: str, seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not seen():
            if time.monotonic() > deadline:
                errors = [line for name in FUNCTIONS for line in looks.errors_of(self.world.session, name)]
                late = f"{what}: not seen in {PATIENCE_SECONDS:.0f} s; the jobs: {self._states()}"
                raise TimeoutError("\n".join([late, *self.world.delivery.failures, *errors]))
            time.sleep(LOOK_SECONDS)


def play(commit: str, say: Callable[[str], None], facts: Document) -> None:
    """One upgrade from a commit, and the way back; the facts are there as far as it came."""
    with TemporaryDirectory(prefix="upgrade-") as name, opened(Path(name)) as world:
        old, finds = unpack(commit, Path(name)), is_since(commit, ONE_ORDER)
        Scene(world=world, old=old, say=say, facts=facts, finds_the_waiting=finds).play()
