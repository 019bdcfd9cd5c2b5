"""Deploy a stack of its own, run four jobs, look at what only a stack shows, delete everything."""

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from trainmaster_client.account_check.examination import FACTS
from trainmaster_client.account_check.facts import Need, skipped
from trainmaster_client.account_check.leftovers import Leftovers
from trainmaster_client.account_check.service_calls import ServiceCalls
from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE, TAG, image_in
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.report import Check, Report

from demos.deployed.account_looks import StackLooks
from demos.deployed.account_stack import SmokeStack
from demos.deployed.lent import Lent, MissingMeansError, lent_by
from demos.deployed.sam import SamError
from demos.stage.evidence import Document
from demos.stage.job_requests import Job
from demos.stage.processes import ROOT
from demos.stage.twin_stage import FINAL

REPORT = Path("build/account-smoke.json")
CAPACITY = 2
POLICY: Document = {"version": 1, "pools": [{"name": "smoke", "capacity": {INSTANCE_TYPE: CAPACITY}}]}
_RUN_SECONDS = 1800
# Counts to $N, a step a second, on top of what the checkpoint says; SIGTERM keeps the count.
_COUNTS = (
    "c=/opt/ml/checkpoints;mkdir -p $c;n=$(cat $c/n 2>/dev/null||echo 0);echo from $n;"
    "trap 'echo $n>$c/n;exit 143' TERM;while [ $n -lt $N ];do sleep 1;n=$((n+1));echo $n>$c/n;done"
)
LONGEST_SECONDS = 1500.0
"""Seconds between the first submission and the last end."""
_LOOK_SECONDS = 5.0
_RUN_FORMAT = "%m%d%H%M%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeJob:
    label: str
    priority: int
    steps: int

    def name(self, run: str) -> str:
        return f"{TAG}-{run}-{self.label}"

    def request(self, run: str, *, role: str, bucket: str, image: str) -> Document:
        job = Job(
            name=self.name(run),
            command=["sh", "-c", _COUNTS],
            image=image,
            instance_type=INSTANCE_TYPE,
            priority=self.priority,
            tags={TAG: run},
            environment={"N": str(self.steps)},
            max_runtime_seconds=_RUN_SECONDS,
        )
        return job.request({"role_arn": role, "bucket": f"{bucket}/{TAG}/{run}"})


JOB1 = SmokeJob(label="job1", priority=1, steps=90)
JOB2 = SmokeJob(label="job2", priority=2, steps=90)
JOB3 = SmokeJob(label="job3", priority=1, steps=15)
JOB4 = SmokeJob(label="job4", priority=3, steps=15)
JOBS = (JOB1, JOB2, JOB3, JOB4)
KEYED = SmokeJob(label="keyed", priority=1, steps=1)
"""Job whose volume has a customer's key, if one was lent."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="account-smoke", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask before it costs money")
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    arguments = parser.parse_args()
    try:
        lent = lent_by(os.environ)
    except MissingMeansError as error:
        print(f"account-smoke: {error}", file=sys.stderr)
        return 2
    question = (
        f"account-smoke makes the stack {lent.stack} in account {lent.account}, {lent.region}, runs four "
        "jobs of ml.m5.large on it and deletes it: 40 minutes, less than 1 USD. Go on? [y/N] "
    )
    if not arguments.yes:
        if not sys.stdin.isatty():
            print("account-smoke: there is no terminal to ask on; agree with --yes", file=sys.stderr)
            return 2
        if input(question).strip().lower() not in {"y", "yes"}:
            return 1
    return tell(lent, arguments.json)


def tell(lent: Lent, path: Path) -> int:
    """Run it; the exit code. Ctrl-C and every error end with the deletion."""
    report = Report("account-smoke")
    stack = SmokeStack(lent=lent, say=_say)
    calls = ServiceCalls(session=lent.session, notes=[])
    try:
        try:
            report.facts["left_by_an_earlier_run"] = _remove_all(stack, calls, lent)
            stack.deploy()
            _play(report, stack)
        finally:
            _say("removing everything ...")
            report.facts["removed"] = _remove_all(stack, calls, lent)
    except (SamError, TrainmasterClientError, TimeoutError, BotoCoreError, ClientError) as error:
        report.check("story", expected="told to its end", actual=str(error))
    except KeyboardInterrupt:
        report.check("story", expected="told to its end", actual="interrupted")
    note(report)
    return report.finish(path)


def _play(report: Report, stack: SmokeStack) -> None:
    lent, resources = stack.lent, stack.deployed.physical_ids()
    api_url = stack.deployed.outputs()["ApiUrl"]
    image = image_in(lent.region)
    if image is None:
        raise SamError(f"there is no public image of AWS for {lent.region} in this program")
    scene = Scene(
        api=ApiClient(api_url, lent.session),
        run=f"{datetime.now(UTC):{_RUN_FORMAT}}",
        request={"role": lent.role, "bucket": lent.bucket, "image": image},
        facts=report.facts,
    )
    looks = StackLooks(session=lent.session, api_url=api_url, stack=lent.stack)
    report.facts["refusals"] = looks.refusals()
    scene.play(key=lent.key)
    report.facts["user_arn"] = {"sts": lent.caller, "api": scene.views[JOB1.label]["submitted_by"]}
    report.facts["metric_seconds"] = looks.metric_seconds()
    report.facts["operator_alarms"] = looks.operator_alarms()
    report.facts["expected_alarms"] = expected_alarms(lent.stack)
    queues = {name: url for name, url in resources.items() if name.endswith("DeadLetterQueue")}
    report.facts["dead_letters"] = looks.dead_letters(queues)


@dataclass(slots=True, kw_only=True)
class Scene:
    """The four jobs on an API, whoever serves it."""

    api: ApiClient
    run: str
    request: Mapping[str, str]
    """Role, bucket and image."""
    facts: Document
    look_seconds: float = _LOOK_SECONDS
    longest_seconds: float = LONGEST_SECONDS

    @property
    def views(self) -> Document:
        views: Document = self.facts.setdefault("jobs", {})
        return views

    def play(self, *, key: str | None) -> None:
        """Raises TimeoutError."""
        self.api.put_policy(POLICY)
        for job in (JOB1, JOB2, JOB3):
            self._submit(job)
        self._watch((JOB1, JOB2), lambda: self._runs(JOB1) and self._runs(JOB2))
        self._submit(JOB4)
        self._watch(JOBS, lambda: all(self.views[job.label]["state"] in FINAL for job in JOBS))
        if key is not None:
            self._submit(KEYED, VolumeKmsKeyId=key)
            self._watch(
                (KEYED,), lambda: self._is_refused(KEYED) or self.views[KEYED.label]["state"] in FINAL
            )
            view = self.views[KEYED.label]
            reason = view.get("reason") or view.get("waiting") or {}
            self.facts["customer_key"] = {
                "key": key,
                "state": view["state"],
                "code": reason.get("code"),
                "reason": reason.get("message"),
            }

    def _submit(self, job: SmokeJob, **resources: str) -> None:
        request = job.request(self.run, **self.request)
        request["ResourceConfig"] |= resources
        self.api.add_job(request)
        _say(f"{job.label}: submitted, priority {job.priority}")

    def _is_refused(self, job: SmokeJob) -> bool:
        """Tell whether the job is refused: it would be tried again for an hour while a right is missing."""
        return bool((self.views[job.label].get("waiting") or {}).get("code") == "refused")

    def _runs(self, job: SmokeJob) -> bool:
        return bool(self.views[job.label]["state"] == "running")

    def _watch(self, jobs: Iterable[SmokeJob], seen: Callable[[], bool]) -> None:
        until = time.monotonic() + self.longest_seconds
        while time.monotonic() < until:
            for job in jobs:
                before = self.views.get(job.label, {}).get("state")
                view = self.views[job.label] = self.api.job(job.name(self.run))
                if view["state"] != before:
                    _say(f"{job.label}: {view['state']}")
            if seen():
                return
            time.sleep(self.look_seconds)
        states = {label: view["state"] for label, view in self.views.items()}
        raise TimeoutError(f"not over after {self.longest_seconds:.0f} s: {states}")


def note(report: Report) -> None:
    """Note the checks, from the facts."""
    jobs = report.facts.get("jobs", {})
    states = {job.label: jobs.get(job.label, {}).get("state") for job in JOBS}
    report.check("completed", expected=dict.fromkeys(states, "completed"), actual=states)
    preempted = [label for label in states if "preempted" in _states(jobs.get(label, {}))]
    report.check("preempted", expected=[JOB1.label], actual=preempted)
    most = _most_at_once(jobs)
    report.check("capacity", expected=f"at most {CAPACITY}", actual=most, ok=most <= CAPACITY)
    for fact in FACTS:
        if Need.STACK not in fact.needs:
            continue
        verdict = fact.judge(report.facts) or skipped("not seen before the end")
        report.checks.append(
            Check(
                id=fact.id,
                ok=verdict.ok,
                expected=fact.assumes,
                actual=None if verdict.ok is None else verdict.said,
                skipped=verdict.said if verdict.ok is None else None,
            )
        )


def expected_alarms(stack: str) -> list[str]:
    """Return the alarms in template.yaml that every stack has."""
    text = (ROOT / "template.yaml").read_text(encoding="utf-8")
    resources = re.split(r"\n(?=  \w+:\n)", text)
    always = [resource for resource in resources if "\n    Condition:" not in resource]
    names = (
        re.search(r"AlarmName: !Sub operator-\$\{AWS::StackName\}-([\w-]+)", resource) for resource in always
    )
    return [f"operator-{stack}-{found[1]}" for found in names if found]


def _states(view: Mapping[str, Any]) -> list[str]:
    return [line["to"] for line in view.get("history", ())]


def _most_at_once(jobs: Mapping[str, Any]) -> int:
    """Return the most jobs that held instances at once, by their histories."""
    holding = {"starting", "running", "preempting", "stopping"}
    steps = sorted(
        (line["at"], line["to"] in holding, label)
        for label, view in jobs.items()
        for line in view.get("history", ())
    )
    now: set[str] = set()
    most = 0
    for _, holds, label in steps:
        (now.add if holds else now.discard)(label)
        most = max(most, len(now))
    return most


def _remove_all(stack: SmokeStack, calls: ServiceCalls, lent: Lent) -> Document:
    """Remove jobs first, as they hold instances; and once more when no stack can start them any longer."""
    leftovers = Leftovers(calls=calls, bucket=lent.bucket)
    leftovers.remove()
    try:
        deleted = stack.delete()
    except (SamError, ClientError) as error:
        leftovers.kept.append(str(error))
        deleted = []
        _say(f"still there: {error}")
    if deleted:
        leftovers.remove()
    for text in (*leftovers.removed, *deleted):
        _say(f"removed: {text}")
    return {"removed": [*leftovers.removed, *deleted], "kept": leftovers.kept}


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
