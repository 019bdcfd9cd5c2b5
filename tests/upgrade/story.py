"""The scene: an earlier stack with a job in each state is upgraded and rolled back under way."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from trainmaster_client.api import ApiClient, find_api_url

from demos.deployed import callers, looks
from demos.deployed.emulated_stack import ADMIN, BUCKET, POLICY, checked_job
from demos.deployed.emulator import World, opened
from demos.programs.ordered_job import END, SAVES_ONCE
from demos.stage.evidence import log_lines
from tests.upgrade.commits import ONE_ORDER, is_since, unpack
from tests.upgrade.old_client import OldClient

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]
States = dict[str, list[Any]]
"""State and number of attempts by the job's name."""

MINUTES = 2
"""Runs of the reconciler after each deployment: what would end a job by mistake does so in the first two."""
RECONCILE = "ReconcileFunction"
FUNCTIONS = ("api", "schedule", "on-training-job-event", "on-idle-alarm", "reconcile")
"""Of both stacks."""
_STEADY, _TAKEN, _URGENT, _WAITS, _HELD = "steady", "taken", "urgent", "waits", "held"
_DONE, _GONE, _NEW, _BACK = "done", "gone", "of-the-new", "rolled-back"
_PRIORITIES = {_STEADY: 2, _URGENT: 9, _GONE: 0}
"""Of those that have not 1."""


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
            lambda: self._all("running", _TAKEN, _STEADY) and self.world.stored(_TAKEN),
        )
        self._submit(_WAITS, _HELD, _GONE, _URGENT)
        self.api.change(_HELD, held=True)
        self.api.cancel(_GONE)
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
        (stored,) = self.world.stored(_TAKEN).values()
        self._submit(_NEW)
        self.facts["old_client"] = self._old_client()
        self._end(_STEADY)
        self._until("the preempted job resumed", lambda: self._all("running", _URGENT, _TAKEN))
        training_job = self.api.job(_TAKEN)["attempts"][-1]["training_job_name"]
        logs = self.world.session.client("logs")
        self._until("its first log line", lambda: bool(self._lines(training_job)))
        self.facts["resumption"] = {
            "stored": stored,
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

    def _hold(self, *jobs: str) -> None:
        for job in jobs:
            self.api.change(job, held=True)

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
            ("show", _TAKEN),
            ("why", _WAITS),
            ("history", _DONE),
            ("pools",),
            ("usage",),
            ("policy", "show"),
            ("violations",),
            ("priority", _HELD, "0"),
        )
        return [client.told(*words) for words in commands]

    def _submit(self, *jobs: str) -> None:
        for job in jobs:
            command = self.world.orders.command(job, SAVES_ONCE)
            self.api.add_job(checked_job(job, _PRIORITIES.get(job, 1), command))
            self._names.append(job)

    def _end(self, job: str) -> None:
        self.world.orders.give(job, END)

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

    def _state(self, job: str) -> str:
        return str(self.api.job(job, estimate=False)["state"])

    def _all(self, state: str, *jobs: str) -> bool:
        return all(self._state(job) == state for job in jobs)

    def _url(self) -> str:
        found = find_api_url(None, self.world.session, env={})
        return callers.gateway_url(found, self.world.ministack)

    def _until(self, what: str, seen: Callable[[], object]) -> None:
        self.world.until(what, seen, states=self._states)


def play(commit: str, say: Callable[[str], None], facts: Document) -> None:
    """One upgrade from a commit, and the way back; the facts are there as far as it came."""
    with TemporaryDirectory(prefix="upgrade-") as name, opened(Path(name)) as world:
        old, finds = unpack(commit, Path(name)), is_since(commit, ONE_ORDER)
        Scene(world=world, old=old, say=say, facts=facts, finds_the_waiting=finds).play()
