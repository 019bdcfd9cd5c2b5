"""Deploy template.yaml as it is, run the four-job example on it, and record what happened.

The stack is deployed, refuses who may not call, runs four jobs, is deployed again meanwhile, and what is left
is looked at (``make deploy-check``).
"""

import argparse
import logging
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from rich.console import Console
from trainmaster_client.api import ApiClient, find_api_url
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Report

from demos.deployed import callers, looks
from demos.deployed.emulated_stack import ADMIN, BUCKET, CAPACITY, POLICY, checked_job
from demos.deployed.emulator import World, opened
from demos.deployed.ministack import PROGRAM
from demos.deployed.sam import SamError
from demos.programs.ordered_job import END, SAVES_ONCE
from demos.stage.courses import FOUR_JOBS, check_four_jobs, most_at_once
from demos.stage.evidence import Document, log_lines, transitions
from demos.stage.screen import Screen
from demos.stage.twin_stage import temporary_folder
from local.reaper import supervise

REPORT = Path("build/deploy.json")
JOB1, JOB2, JOB3, JOB4 = "job1", "job2", "job3", "job4"
PRIORITIES = {JOB1: 1, JOB2: 2, JOB3: 1, JOB4: 3}
CHANGED = {"RetentionDays": "30"}
"""Parameters that the second deployment changes: they reach the environment of every function."""
WRITES = frozenset({"CreateTrainingJob", "StopTrainingJob", "UpdateTrainingJob"})
PREEMPTION = (JOB1, "preempting")
AFTERWARDS = FOUR_JOBS[FOUR_JOBS.index(PREEMPTION) :]
"""Steps after the preemption; before it job1 and job2 run, in either order."""
EDGES = {
    "schedule": "wake-up-reaches-schedule",
    "reconcile": "scheduler-runs-reconcile",
    "on-training-job-event": "event-reaches-its-function",
    "on-idle-alarm": "alarm-reaches-its-function",
}
"""Function -> check."""
ENDED_BY_UPDATE = "ReconcileDeadLetterQueue"
"""MiniStack ends a function that runs while it is updated; a run of reconcile is not tried again."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy-check", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    parser.add_argument("--template", type=Path, help="this one, whose code is built; not the checkout's own")
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    if not PROGRAM.exists():
        print(f"deploy-check: there is no {PROGRAM}; make deploy-check installs it", file=sys.stderr)
        return 2
    return supervise(lambda: tell(arguments.json, Console(highlight=False), arguments.template))


def tell(path: Path, console: Console, template: Path | None = None) -> int:
    """Run the check, of a ``template`` whose code is built, or of the checkout's; return the exit code."""
    report, screen = Report(name="deploy"), Screen(console)
    try:
        with temporary_folder() as folder, opened(folder) as world:
            screen.say(
                f"MiniStack is up at {world.ministack.endpoint_url}, SageMaker at {world.sagemaker.url}."
            )
            api = _deploy(world, screen, report, template)
            scene = _Scene(world, screen, report.facts, api)
            scene.play()
            scene.note()
    except (SamError, TimeoutError, TrainmasterClientError) as error:
        print(f"deploy: NOT ok: {error}")
        return 1
    check(report, capacity=CAPACITY)
    console.print()
    return report.finish(path)


def _deploy(world: World, screen: Screen, report: Report, template: Path | None) -> ApiClient:
    """Deploy the stack and let its first callers call it."""
    deployment, session = world.deployment, world.session
    screen.say(f"sam deploy: {template or 'template.yaml as it is, after sam build'} ...")
    if template is None:
        deployment.build()
    else:
        deployment.take(template.resolve())
    deployment.deploy()
    session.client("s3").create_bucket(Bucket=BUCKET)
    resources = deployment.resources()
    screen.say(f"{deployment.status()}: {len(resources)} resources.")
    api_url = find_api_url(None, session, env={})
    url = callers.gateway_url(api_url, world.ministack)
    admin = callers.make_user(session, ADMIN, may_invoke=True)
    report.facts |= {
        "stack_status": deployment.status(),
        "resources": resources,
        "outputs": deployment.outputs(),
        "api_url_found": api_url,
        "kept": looks.kept(session, deployment),
        "refusals": _refusals(world, url, screen),
    }
    report.facts["rights_added"] = deployment.add_rights()
    return ApiClient(url, admin)


def _refusals(world: World, url: str, screen: Screen) -> Document:
    """Let those call who may not, before anyone may."""
    session, table = world.session, world.deployment.name_of("Table")
    before = looks.items_in(session, table)
    refusals = callers.refusals(session, url, world.deployment.name_of("ApiFunction"))
    for who, what in refusals.items():
        screen.say(f"refused, {who.replace('_', ' ')}: {what}")
    return refusals | {"items_before": before, "items_after": looks.items_in(session, table)}


class _Scene:
    def __init__(self, world: World, screen: Screen, facts: Document, api: ApiClient) -> None:
        self._world, self._screen, self._facts, self._api = world, screen, facts, api
        self._views: dict[str, Document] = {}

    def play(self) -> None:
        self._api.put_policy(POLICY)
        for name in (JOB1, JOB2, JOB3):
            self._submit(name)
        self._watch_until(lambda: self._are_running(JOB1, JOB2) and self._world.stored(JOB1))
        self._ring_the_alarm(JOB2)
        self._screen.say("Now something urgent:")
        self._submit(JOB4)
        self._watch_until(lambda: self._states()[JOB1] == "preempted" and self._are_running(JOB2, JOB4))
        (stored,) = self._world.stored(JOB1).values()
        self._deploy_again()
        self._end(JOB2)
        self._watch_until(lambda: self._are_running(JOB1))
        self._end(JOB4)
        self._watch_until(lambda: self._are_running(JOB3))
        self._end(JOB1)
        self._end(JOB3)
        self._watch_until(lambda: set(self._states().values()) == {"completed"})
        training_job = self._live(JOB1)["training_job_name"]
        self._facts["resumption"] = {
            "training_job_name": training_job,
            "stored": stored,
            "first_line": log_lines(self._world.session.client("logs"), training_job)[0],
        }

    def note(self) -> None:
        """Record the results of jobs, functions and queues."""
        session, world = self._world.session, self._world
        by_then = self._facts["update"]["reconciles_by_then"]
        self._wait("a reconcile of the schedule after the update", lambda: self._reconciles() > by_then)
        self._wait("no alarm of a job", lambda: not looks.job_alarms(session))
        queues = {name: world.deployment.name_of(name) for name in looks.DEAD_LETTER_QUEUES}
        self._facts |= {
            "transitions": transitions(self._views.values()),
            "processes": world.sagemaker.processes(),
            "calls": world.sagemaker.calls(),
            "events_delivered": world.delivery.delivered,
            "events_failed": world.delivery.failures,
            "functions": {name: looks.report_of(session, name) for name in looks.FUNCTIONS},
            "dead_letters": {name: looks.messages_in(session, url) for name, url in queues.items()},
            "alarms_left": looks.job_alarms(session),
        }

    def _submit(self, name: str) -> None:
        priority = PRIORITIES[name]
        self._screen.say(f"add-job  {name}, priority {priority}")
        self._api.add_job(checked_job(name, priority, self._world.orders.command(name, SAVES_ONCE)))
        self._views[name] = {}

    def _end(self, name: str) -> None:
        self._screen.say(f"{name} may end.")
        self._world.orders.give(name, END)

    def _ring_the_alarm(self, job: str) -> None:
        """Skip the alarm's 15 minutes by the call that tests on AWS use: MiniStack's clock is real."""
        session = self._world.session
        self._wait(f"the alarm of {job}", lambda: any(job in name for name in looks.job_alarms(session)))
        alarms = looks.job_alarms(session)
        name = next(alarm for alarm in alarms if job in alarm)
        cloudwatch = session.client("cloudwatch")
        self._screen.say(f"SetAlarmState ALARM, then OK: {name}")
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="deploy-check")
        self._watch_until(lambda: self._live(job)["idle_since"] is not None)
        idle = self._live(job)["idle_since"]
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="OK", StateReason="deploy-check")
        self._watch_until(lambda: self._live(job)["idle_since"] is None)
        again = self._live(job)["idle_since"]
        self._facts["alarm"] = {"made": alarms, "rung": name, "idle_since": idle, "idle_after_ok": again}

    def _deploy_again(self) -> None:
        """Update the stack while two jobs run and two wait."""
        deployment, before = self._world.deployment, self._states()
        self._screen.say(f"sam deploy again, with {CHANGED}, while {before} ...")
        deployment.deploy(**CHANGED)
        self._look()
        function = deployment.name_of("ScheduleFunction")
        settings = self._world.session.client("lambda").get_function_configuration(FunctionName=function)
        key = "TRAINMASTER_RETENTION_DAYS"
        self._facts["update"] = {
            "changed": CHANGED,
            "stack_status": deployment.status(),
            "environment": {key: settings["Environment"]["Variables"][key]},
            "before": before,
            "after": self._states(),
            "reconciles_by_then": self._reconciles(),
        }
        self._screen.say(f"{deployment.status()}.")

    def _reconciles(self) -> int:
        return looks.runs_of(looks.function_lines(self._world.session, "reconcile"))

    def _are_running(self, *names: str) -> bool:
        return all(self._states()[name] == "running" for name in names)

    def _states(self) -> dict[str, str]:
        return {name: view["state"] for name, view in self._views.items()}

    def _live(self, name: str) -> Document:
        live: Document = self._views[name]["attempts"][-1]
        return live

    def _look(self) -> bool:
        self._views = {name: self._api.job(name) for name in self._views}
        self._screen.show(self._api.jobs()["jobs"], list(self._views.values()))
        return True

    def _watch_until(self, seen: Callable[[], object]) -> None:
        self._wait("the jobs", lambda: self._look() and seen())

    def _wait(self, what: str, seen: Callable[[], object]) -> None:
        self._world.until(what, seen, states=self._states)


def check(report: Report, *, capacity: int) -> None:
    """Check what the deployment must have shown, from its facts alone."""
    _check_stack(report)
    _check_jobs(report, capacity)
    _check_edges(report)


def _check_stack(report: Report) -> None:
    facts, refusals = report.facts, report.facts["refusals"]
    report.check("stack", expected="CREATE_COMPLETE", actual=facts["stack_status"])
    statuses = sorted({resource["status"] for resource in facts["resources"]})
    report.check("resources", expected=["CREATE_COMPLETE"], actual=statuses)
    report.check("api-url", expected=facts["outputs"]["ApiUrl"], actual=facts["api_url_found"])
    report.check("unsigned-refused", expected=403, actual=refusals["unsigned"])
    for who in ("wrong_secret", "no_right", "root_user"):
        name, refusal = f"{who.replace('_', '-')}-refused", refusals[who]
        report.check(name, expected="403", actual=refusal, ok=refusal is not None and "(403)" in refusal)
    report.check("no-user-arn-refused", expected=500, actual=refusals["no_user_arn"]["status"])
    report.check("refused-writes-nothing", expected=refusals["items_before"], actual=refusals["items_after"])


def _check_jobs(report: Report, capacity: int) -> None:
    facts, resumption = report.facts, report.facts["resumption"]
    steps = [(step["job"], step["to"]) for step in facts["transitions"]]
    before = takewhile(lambda step: step != PREEMPTION, steps)
    first = sorted(job for job, to in before if to == "running")
    report.check("first", expected=[JOB1, JOB2], actual=first)
    check_four_jobs(report, steps, course=AFTERWARDS)
    report.check("capacity", expected=capacity, actual=most_at_once(facts["processes"]))
    expected = f"resumed from checkpoint.txt sha256={resumption['stored']}"
    report.check("resumed-from", expected=expected, actual=resumption["first_line"])
    update = facts["update"]
    report.check("update", expected="UPDATE_COMPLETE", actual=update["stack_status"])
    changed = {"TRAINMASTER_RETENTION_DAYS": update["changed"]["RetentionDays"]}
    report.check("update-took", expected=changed, actual=update["environment"])
    report.check("update-lost-nothing", expected=update["before"], actual=update["after"])


def _check_edges(report: Report) -> None:
    """Check what each event sets off, and that nothing was set off in vain."""
    facts, functions = report.facts, report.facts["functions"]
    writers = sorted({call["access_key_id"] for call in facts["calls"] if call["operation"] in WRITES})
    report.check("one-hand-on-the-lever", expected=1, actual=len(writers))
    for name, edge in EDGES.items():
        runs = functions[name]["runs"]
        report.check(edge, expected="at least 1 run", actual=runs, ok=runs > 0)
    for check_id, kind in (("no-function-failed", "errors"), ("no-right-missing", "refused")):
        wrong = {name: function[kind] for name, function in functions.items() if function[kind]}
        report.check(check_id, expected={}, actual=wrong)
    report.check("events-carried", expected=[], actual=facts["events_failed"])
    letters = facts["dead_letters"]
    most = dict.fromkeys(letters, 0) | {ENDED_BY_UPDATE: 1}
    few = all(letters[name] <= most[name] for name in letters)
    report.check("dead-letters", expected={"at most": most}, actual=letters, ok=few)
    alarm = facts["alarm"]
    report.check("idle-noted", expected=True, actual=alarm["idle_since"] is not None)
    report.check("busy-again", expected=None, actual=alarm["idle_after_ok"])
    report.check("alarms-tidied", expected=[], actual=facts["alarms_left"])


if __name__ == "__main__":
    raise SystemExit(main())
