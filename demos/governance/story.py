"""The scenes on one timeline: what users do, what the twin is asked for, and what is noted of it.

Nobody here calls a function or changes a state: the clock moves, and the deployed stack does the rest.
"""

import os
import tempfile
from pathlib import Path

import boto3
from trainmaster.core.costs.prices import PriceTable

from demos.stage.command import Telling
from demos.stage.evidence import Bucket, Document, log_lines
from demos.governance import container, evidence, jobs
from demos.governance.checks import check
from demos.governance.governed_stage import GovernedStage
from demos.stage.twin_stage import opened_twin

STALL_MINUTE = 20
"""Minute of Training at which the stalled job's GPUs stop working."""
SETTLE_MINUTES = 2
"""Longer than SageMaker's waits at this speed, and than a period of the reconciler."""
INTERRUPT_EVERY_MINUTES = 20
FAIL_MINUTE = 125
"""Minute of the timeline; the job that then fails has trained for more than two hours."""
LAST_MINUTES = 10
LOOK_EVERY_MINUTES = 5


def tell(telling: Telling) -> int:
    """Run the demo; the exit code."""
    report, screen = telling.report, telling.screen
    with tempfile.TemporaryDirectory(prefix="trainmaster-demo-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with opened_twin(folder, policy=jobs.POLICY) as twin:
            os.environ.update(twin.environment())
            screen.say(f"The twin is up at {twin.ready['endpoint_url']}, on a clock that is moved by hand.")
            _Story(GovernedStage(twin, screen, folder), report.facts).play()
    check(report)
    screen.console.print()
    return telling.finish()


class _Story:
    def __init__(self, stage: GovernedStage, facts: Document) -> None:
        self._stage = stage
        self._facts = facts
        self._minute = 0.0
        self._bucket = Bucket()

    def play(self) -> None:
        self._facts["policy"] = jobs.POLICY
        self._break_rules()
        self._start_jobs()
        self._interrupt_spot()
        self._lose_network()
        self._end()
        self._note()
        self._go_on_without_pools()
        self._facts["journal"] = evidence.changes(self._stage.twin.records())

    def _pass(self, minutes: float) -> None:
        """Let time go by, with a look at the jobs occasionally."""
        self._minute += minutes
        while minutes > 0:
            step = min(minutes, LOOK_EVERY_MINUTES)
            self._stage.clock(step)
            minutes -= step

    def _break_rules(self) -> None:
        self._say("POST /add-job   untagged: without a tag that the rules require, and for four days")
        self._facts["refused"] = refused = self._stage.submit(jobs.UNTAGGED)
        for error in refused.get("errors", ()):
            self._say(f"    {refused['status']}: {error['field']} {error['message']} ({error['rule']})")
        self._say("boto3           untagged: the same, started past the queue")
        self._stage.start_plainly(jobs.UNTAGGED)

    def _start_jobs(self) -> None:
        self._say("boto3           plain: a good job on two hosts, started past the queue")
        self._stage.start_plainly(jobs.PLAIN)
        for job in jobs.SUBMITTED:
            self._say(f"POST /add-job   {job.name}")
            self._stage.submit(job)
        self._pass(SETTLE_MINUTES)
        self._stage.wait_for_processes("bug has failed", lambda: self._stage.state(jobs.BUG.name) == "failed")
        self._stage.control("POST", "/gpu", training_job="stalled", percent=0, from_minute=STALL_MINUTE)
        self._stage.control(
            "POST", "/gpu", training_job="one-host-busy", host="algo-2", percent=0, from_minute=STALL_MINUTE
        )
        self._say(f"From minute {STALL_MINUTE} of training on, all GPUs of stalled do nothing, and those")
        self._say("of one of the two hosts of one-host-busy.")
        self._pass(SETTLE_MINUTES)
        self._facts["adopted_view"] = self._stage.view(jobs.PLAIN.name)
        self._facts["alarms_at_work"] = evidence.idle_alarms(self._stage.cloudwatch)

    def _interrupt_spot(self) -> None:
        for number in range(1, jobs.MAX_INTERRUPTIONS + 2):
            self._pass(INTERRUPT_EVERY_MINUTES)
            self._say(f"AWS takes the instances of spot away: interruption {number}")
            self._stage.control("POST", "/spot", training_job="spot", action="interrupt")
            self._pass(SETTLE_MINUTES)

    def _lose_network(self) -> None:
        self._pass(max(FAIL_MINUTE - self._minute, 0))
        self._stage.order(jobs.PLAIN, container.NETWORK_FAILS)
        self._stage.wait_for_processes(
            "the log of plain tells of NCCL", lambda: container.WATCHDOG in self._log("plain")
        )
        self._say("The hosts of plain lose each other, after more than two hours of training")
        self._stage.control("POST", "/fail", training_job="plain", exit_code=1)
        self._stage.wait_for_processes(
            "plain has failed", lambda: self._stage.described("plain")["TrainingJobStatus"] == "Failed"
        )
        checkpoints = f"s3://{self._stage.twin.ready['bucket']}/checkpoints/{jobs.PLAIN.name}"
        self._facts["checkpoints_at_failure"] = self._bucket.hashes(checkpoints)
        self._pass(SETTLE_MINUTES)
        self._pass(SETTLE_MINUTES)
        retry = self._last_attempt(jobs.PLAIN)
        self._stage.wait_for_processes("the retry of plain has begun", lambda: self._log(retry))

    def _end(self) -> None:
        self._say("All that still runs is done.")
        for job in (jobs.PLAIN, jobs.BUSY, jobs.ONE_HOST_BUSY, jobs.SPOT):
            self._stage.order(job, container.END)
            self._until_ended(self._last_attempt(job))
        self._pass(LAST_MINUTES)

    def _note(self) -> None:
        stage, facts = self._stage, self._facts
        views = [view for job in jobs.GOVERNED if (view := stage.view(job.name)) is not None]
        records = stage.twin.records()
        facts["jobs"] = {view["name"]: view for view in views}
        facts["log_lines"] = {
            attempt["training_job_name"]: self._log(attempt["training_job_name"])
            for view in views
            for attempt in view["attempts"]
        }
        facts["unmanaged"] = evidence.stopped_job(records, jobs.UNTAGGED.name)
        facts["violations"] = stage.api.violations()["violations"]
        facts["idle"] = evidence.idle(records, jobs.STALLED.name, stall_minute=STALL_MINUTE)
        facts["stops"] = evidence.stops(records)
        facts["alarms_at_the_end"] = evidence.idle_alarms(stage.cloudwatch)
        facts |= evidence.billed(stage.control("GET", "/training-jobs")["training_jobs"], views)
        facts |= evidence.ledger(stage.api, views)
        types = sorted({training_job["instance_type"] for training_job in facts["training_jobs"]})
        facts["prices"] = {
            instance_type: float(PriceTable().usd_per_hour(instance_type) or 0) for instance_type in types
        }

    def _go_on_without_pools(self) -> None:
        self._say("PUT /policy     the same rules, and no pools at all")
        put = self._stage.api.put_policy(jobs.WITHOUT_POOLS)
        self._say("boto3           untagged-late: without the required tag")
        self._stage.start_plainly(jobs.LATE)
        self._pass(SETTLE_MINUTES)
        self._facts["without_pools"] = {
            "policy": put["policy"],
            "stopped": evidence.stopped_job(self._stage.twin.records(), jobs.LATE.name),
            "violations": [
                violation
                for violation in self._stage.api.violations()["violations"]
                if violation["training_job_name"] == jobs.LATE.name
            ],
        }

    def _last_attempt(self, job: jobs.DemoJob) -> str:
        view = self._stage.view(job.name)
        assert view is not None, f"the API does not know {job.name}"
        return str(view["attempts"][-1]["training_job_name"])

    def _until_ended(self, training_job_name: str) -> None:
        def has_ended() -> bool:
            return bool(self._stage.described(training_job_name)["SecondaryStatus"] != "Training")

        self._stage.wait_for_processes(f"{training_job_name} has ended", has_ended)

    def _log(self, training_job_name: str) -> list[str]:
        return log_lines(boto3.client("logs"), training_job_name)

    def _say(self, line: str) -> None:
        self._stage.screen.say(line)
