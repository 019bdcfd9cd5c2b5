"""The scene: deploy, be refused, run four jobs, deploy again meanwhile, and look at what is left."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster_client.api import ApiClient, find_api_url
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Report

from demos.deploy_check import callers, kept, looks
from demos.deploy_check.checks import check
from demos.deploy_check.container import CHECKPOINT, END
from demos.deploy_check.jobs import CAPACITY, JOB1, JOB2, JOB3, JOB4, POLICY
from demos.deploy_check.stack import ADMIN, BUCKET, SamError
from demos.deploy_check.world import World, opened
from demos.stage.evidence import Bucket, log_lines, transitions
from demos.stage.screen import Screen

if TYPE_CHECKING:
    from rich.console import Console

    from demos.deploy_check.jobs import CheckedJob

Document = dict[str, Any]

LONGEST_SECONDS = 180.0
"""Seconds of the longest wait of the scene; the schedule alone takes a minute."""
LOOK_SECONDS = 0.5
CHANGED = {"RetentionDays": "30"}
"""Parameters that the second deployment changes: they reach the environment of every function."""


def tell(path: Path, console: "Console", template: Path | None = None) -> int:
    """Run the check and return the exit code.

    ``template`` is one whose code is built; None takes the checkout's.
    """
    report = Report(name="deploy")
    try:
        _play(report, console, template)
    except (SamError, TimeoutError, TrainmasterClientError) as error:
        print(f"deploy: NOT ok: {error}")
        return 1
    check(report, capacity=CAPACITY)
    console.print()
    return report.finish(path)


def _play(report: Report, console: "Console", template: Path | None) -> None:
    screen = Screen(console)
    with tempfile.TemporaryDirectory(prefix="trainmaster-deploy-") as name, opened(Path(name)) as world:
        screen.say(f"MiniStack is up at {world.ministack.endpoint_url}, SageMaker at {world.sagemaker.url}.")
        api = _deploy(world, screen, report, template)
        scene = _Scene(world, screen, report, api)
        scene.play()
        scene.note()


def _deploy(world: World, screen: Screen, report: Report, template: Path | None) -> ApiClient:
    """Deploy the stack and let its first callers call it."""
    deployment = world.deployment
    screen.say(f"sam deploy: {template or 'template.yaml as it is, after sam build'} ...")
    if template is None:
        deployment.build()
    else:
        deployment.take(template.resolve())
    deployment.deploy()
    world.session.client("s3").create_bucket(Bucket=BUCKET)
    resources = deployment.resources()
    screen.say(f"{deployment.status()}: {len(resources)} resources.")
    api_url = find_api_url(None, world.session, env={})
    url = callers.gateway_url(api_url, world.ministack)
    admin = callers.make_user(world.session, ADMIN, may_invoke=True)
    report.facts |= {
        "stack_status": deployment.status(),
        "resources": [
            {key: resource[key] for key in ("logical_id", "type", "status")} for resource in resources
        ],
        "outputs": deployment.outputs(),
        "api_url_found": api_url,
        "kept": kept.kept(world.session, deployment),
        "refusals": _refusals(world, url, screen),
    }
    report.facts["rights_added"] = deployment.add_rights()
    return ApiClient(url, admin)


def _refusals(world: World, url: str, screen: Screen) -> Document:
    """Try every caller who may not call, before anyone may."""
    table = world.deployment.name_of("Table")
    before = looks.items_in(world.session, table)
    stranger = callers.make_user(world.session, "stranger", may_invoke=False)
    friend = callers.make_user(world.session, "friend", may_invoke=True)
    refusals: Document = {
        "unsigned": callers.unsigned_status(url),
        "wrong_secret": callers.refusal_of(url, callers.with_wrong_secret(friend)),
        "no_right": callers.refusal_of(url, stranger),
        "root_user": callers.refusal_of(url, world.session),
        "no_user_arn": callers.answer_without_arn(world.session, world.deployment.name_of("ApiFunction")),
    }
    for who, what in refusals.items():
        screen.say(f"refused, {who.replace('_', ' ')}: {what}")
    return refusals | {"items_before": before, "items_after": looks.items_in(world.session, table)}


class _Scene:
    def __init__(self, world: World, screen: Screen, report: Report, api: ApiClient) -> None:
        self._world = world
        self._screen = screen
        self._report = report
        self._api = api
        self._views: dict[str, Document] = {}

    def play(self) -> None:
        self._api.put_policy(POLICY)
        for job in (JOB1, JOB2, JOB3):
            self._submit(job)
        self._watch_until(lambda: self._is_running(JOB1, JOB2) and self._has_checkpoint(JOB1))
        self._ring_the_alarm(JOB2)
        self._screen.say("Now something urgent:")
        self._submit(JOB4)
        self._watch_until(lambda: self._state(JOB1) == "preempted" and self._is_running(JOB2, JOB4))
        stored = Bucket().hashes(JOB1.checkpoints)
        self._deploy_again()
        self._end(JOB2)
        self._watch_until(lambda: self._is_running(JOB1))
        self._end(JOB4)
        self._watch_until(lambda: self._is_running(JOB3))
        self._end(JOB1)
        self._end(JOB3)
        self._watch_until(lambda: all(view["state"] == "completed" for view in self._views.values()))
        self._note_resumption(stored)

    def note(self) -> None:
        """Record the results of jobs, functions and queues."""
        self._wait("a reconcile of the schedule after the update", self._has_reconciled)
        session, deployment = self._world.session, self._world.deployment
        self._wait("no alarm of a job", lambda: not looks.job_alarms(session))
        logs = {name: looks.function_lines(session, name) for name in looks.FUNCTIONS}
        self._report.facts |= {
            "transitions": transitions(self._views.values()),
            "processes": self._world.sagemaker.processes(),
            "calls": self._world.sagemaker.calls(),
            "events_delivered": self._world.delivery.delivered,
            "events_failed": self._world.delivery.failures,
            "functions": {
                name: {
                    "runs": looks.runs_of(lines),
                    "errors": looks.errors_in(lines),
                    "refused": looks.refused_in(lines),
                }
                for name, lines in logs.items()
            },
            "dead_letters": {
                name: looks.messages_in(session, deployment.name_of(name))
                for name in looks.DEAD_LETTER_QUEUES
            },
            "alarms_left": looks.job_alarms(session),
        }

    def _submit(self, job: "CheckedJob") -> None:
        self._screen.say(f"add-job  {job.name}, priority {job.priority}")
        self._orders(job).mkdir()
        self._api.add_job(job.request(self._orders(job)))
        self._views[job.name] = {}

    def _end(self, job: "CheckedJob") -> None:
        self._screen.say(f"{job.name} may end.")
        (self._orders(job) / END).touch()

    def _ring_the_alarm(self, job: "CheckedJob") -> None:
        """Skip the alarm's 15 minutes by the call that tests on AWS use: MiniStack's clock is real."""
        session = self._world.session
        self._wait(
            f"the alarm of {job.name}",
            lambda: any(job.name in alarm_name for alarm_name in looks.job_alarms(session)),
        )
        alarms = looks.job_alarms(session)
        name = next(alarm_name for alarm_name in alarms if job.name in alarm_name)
        cloudwatch = session.client("cloudwatch")
        self._screen.say(f"SetAlarmState ALARM, then OK: {name}")
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="deploy-check")
        self._watch_until(lambda: self._live(job)["idle_since"] is not None)
        idle = self._live(job)["idle_since"]
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="deploy-check")
        self._watch_until(lambda: self._live(job)["idle_since"] is None)
        self._report.facts["alarm"] = {
            "made": alarms,
            "rung": name,
            "idle_since": idle,
            "idle_after_ok": self._live(job)["idle_since"],
        }

    def _deploy_again(self) -> None:
        """Update the stack while two jobs run and two wait."""
        deployment = self._world.deployment
        before = self._states()
        self._screen.say(f"sam deploy again, with {CHANGED}, while {before} ...")
        deployment.deploy(**CHANGED)
        self._look()
        self._report.facts["update"] = {
            "changed": CHANGED,
            "stack_status": deployment.status(),
            "environment": self._environment_of_schedule(),
            "before": before,
            "after": self._states(),
            "reconciles_by_then": self._reconciles(),
        }
        self._screen.say(f"{deployment.status()}.")

    def _environment_of_schedule(self) -> Document:
        functions = self._world.session.client("lambda")
        name = self._world.deployment.name_of("ScheduleFunction")
        variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        return {"TRAINMASTER_RETENTION_DAYS": variables["TRAINMASTER_RETENTION_DAYS"]}

    def _note_resumption(self, stored: dict[str, str]) -> None:
        second = self._views[JOB1.name]["attempts"][-1]
        lines = log_lines(self._world.session.client("logs"), second["training_job_name"])
        self._report.facts["resumption"] = {
            "training_job_name": second["training_job_name"],
            "stored": stored[f"{JOB1.checkpoints}/{CHECKPOINT}"],
            "first_line": lines[0],
        }

    def _reconciles(self) -> int:
        return looks.runs_of(looks.function_lines(self._world.session, "reconcile"))

    def _has_reconciled(self) -> bool:
        by_then: int = self._report.facts["update"]["reconciles_by_then"]
        return self._reconciles() > by_then

    def _has_checkpoint(self, job: "CheckedJob") -> bool:
        return f"{job.checkpoints}/{CHECKPOINT}" in Bucket().hashes(job.checkpoints)

    def _is_running(self, *jobs: "CheckedJob") -> bool:
        return all(self._state(job) == "running" for job in jobs)

    def _state(self, job: "CheckedJob") -> str:
        state: str = self._views[job.name]["state"]
        return state

    def _states(self) -> dict[str, str]:
        return {name: view["state"] for name, view in self._views.items()}

    def _live(self, job: "CheckedJob") -> Document:
        live: Document = self._views[job.name]["attempts"][-1]
        return live

    def _orders(self, job: "CheckedJob") -> Path:
        return self._world.folder / f"orders-{job.name}"

    def _look(self) -> None:
        self._views = {name: self._api.job(name) for name in self._views}
        self._screen.show(self._api.jobs()["jobs"], list(self._views.values()))

    def _watch_until(self, seen: Callable[[], bool]) -> None:
        def looked() -> bool:
            self._look()
            return seen()

        self._wait("the jobs", looked)

    def _what_is_wrong(self, awaited: str) -> str:
        """Say what is missing, with the functions' errors: the logs are gone with MiniStack."""
        session = self._world.session
        errors = [f"{name}: {line}" for name in looks.FUNCTIONS for line in looks.errors_of(session, name)]
        queue = f"{awaited}: not seen in {LONGEST_SECONDS:.0f} s; the queue: {self._states()}"
        return "\n".join([queue, *self._world.delivery.failures, *errors])

    def _wait(self, what: str, seen: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LONGEST_SECONDS
        while not seen():
            if time.monotonic() > deadline:
                raise TimeoutError(self._what_is_wrong(what))
            time.sleep(LOOK_SECONDS)
