"""Break rules, stall, fail and bypass the queue, show what becomes of it, and record what happened.

``make demo-governance`` calls no function and changes no state: the clock moves, and the deployed stack does
the rest.
"""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster_client.report import Report

from demos.programs.ordered_job import END, SAVES, SAY
from demos.stage import governed, governed_jobs
from demos.stage.command import Telling, run
from demos.stage.evidence import Document
from demos.stage.governed_jobs import (
    BUG,
    BUSY,
    DIVERGED,
    GOVERNED,
    LATE,
    MAX_INTERRUPTIONS,
    ONE_HOST_BUSY,
    PLAIN,
    SPOT,
    STALLED,
    SUBMITTED,
    UNTAGGED,
)
from demos.stage.job_requests import Job
from demos.stage.twin_stage import Stage, opened_stage

STALL_MINUTE = 20
"""Minute of Training at which the stalled job's GPUs stop working."""
SETTLE_MINUTES = 2
"""Longer than SageMaker's waits at this speed, and than a period of the reconciler."""
INTERRUPT_EVERY_MINUTES, LAST_MINUTES, LOOK_EVERY_MINUTES = 20, 10, 5
FAIL_MINUTE = 125
"""Minute of the timeline; the job that then fails has trained for more than two hours."""
CENT_USD = 0.01
Row = tuple[Any, ...]
"""Check, what is expected, what was found; and whether that is well, where it is not the same."""


def tell(telling: Telling) -> int:
    with opened_stage(telling, governed_jobs.POLICY, pool="a clock that is moved by hand") as stage:
        _Story(stage, telling.report.facts).play()
    check(telling.report)
    return telling.finish()


class _Story:
    def __init__(self, stage: Stage, facts: Document) -> None:
        self._stage, self._facts, self._say = stage, facts, stage.screen.say
        self._minute = 0.0

    def play(self) -> None:
        self._facts["policy"] = governed_jobs.POLICY
        self._break_rules()
        self._start_jobs()
        self._lose_numbers()
        self._interrupt_spot()
        self._lose_network()
        self._end()
        self._note()
        self._go_on_without_pools()
        self._facts["journal"] = governed.changes(self._stage.twin.records())

    def _job(self, name: str) -> Job:
        return governed_jobs.governed_job(name, command=self._stage.orders.command(name, SAVES))

    def _start_plainly(self, name: str) -> None:
        """Start a job by CreateTrainingJob, bypassing the queue."""
        self._stage.sagemaker.create_training_job(**self._job(name).request(self._stage.twin.ready))
        self._stage.name(name, name)

    def _pass(self, minutes: float) -> None:
        """Let time go by, with a look at the jobs occasionally."""
        self._minute += minutes
        while minutes > 0:
            step = min(minutes, LOOK_EVERY_MINUTES)
            self._stage.clock(step)
            self._stage.look()
            minutes -= step

    def _break_rules(self) -> None:
        self._say("POST /add-job   untagged: without a tag that the rules require, and for four days")
        self._facts["refused"] = refused = governed.submitted(self._stage, self._job(UNTAGGED))
        for error in refused.get("errors", ()):
            self._say(f"    {refused['status']}: {error['field']} {error['message']} ({error['rule']})")
        self._say("boto3           untagged: the same, started past the queue")
        self._start_plainly(UNTAGGED)

    def _start_jobs(self) -> None:
        stage = self._stage
        self._say("boto3           plain: a good job on two hosts, started past the queue")
        self._start_plainly(PLAIN)
        for name in SUBMITTED:
            self._say(f"POST /add-job   {name}")
            stage.submit(self._job(name))
        self._pass(SETTLE_MINUTES)
        self._wait("bug has failed", lambda: stage.state(BUG) == "failed")
        stall = {"percent": 0, "from_minute": STALL_MINUTE}
        stage.control("POST", "/gpu", training_job=STALLED, **stall)
        stage.control("POST", "/gpu", training_job=ONE_HOST_BUSY, host="algo-2", **stall)
        self._say(f"From minute {STALL_MINUTE} of training on, all GPUs of stalled do nothing, and those")
        self._say("of one of the two hosts of one-host-busy.")
        self._pass(SETTLE_MINUTES)
        self._facts["adopted_view"] = stage.view(PLAIN)
        self._facts["alarms_at_work"] = governed.idle_alarms(stage.client("cloudwatch"))

    def _lose_numbers(self) -> None:
        stage = self._stage
        self._say("The loss of diverged is nan from here on")
        stage.orders.give(DIVERGED, SAY, governed.NOT_FINITE)
        self._wait("the log of diverged has it", lambda: "loss=nan" in "\n".join(stage.lines(DIVERGED)))
        self._facts["nan_at"] = stage.twin.records()[-1]["clock"]

    def _interrupt_spot(self) -> None:
        for number in range(1, MAX_INTERRUPTIONS + 2):
            self._pass(INTERRUPT_EVERY_MINUTES)
            self._say(f"AWS takes the instances of spot away: interruption {number}")
            self._stage.control("POST", "/spot", training_job=SPOT, action="interrupt")
            self._pass(SETTLE_MINUTES)

    def _lose_network(self) -> None:
        stage = self._stage
        self._pass(max(FAIL_MINUTE - self._minute, 0))
        stage.orders.give(PLAIN, SAY, governed.WATCHDOG)
        self._wait("the log of plain tells of NCCL", lambda: governed.WATCHDOG in stage.lines(PLAIN))
        self._say("The hosts of plain lose each other, after more than two hours of training")
        stage.control("POST", "/fail", training_job=PLAIN, exit_code=1)
        self._wait("plain has failed", lambda: stage.described(PLAIN)["TrainingJobStatus"] == "Failed")
        self._facts["checkpoints_at_failure"] = stage.bucket.hashes(stage.checkpoints(PLAIN))
        self._pass(SETTLE_MINUTES)
        self._pass(SETTLE_MINUTES)
        self._wait("the retry of plain has begun", lambda: stage.lines(stage.attempt(PLAIN)))

    def _end(self) -> None:
        stage = self._stage
        self._say("All that still runs is done.")
        for name in (PLAIN, BUSY, ONE_HOST_BUSY, SPOT):
            stage.orders.give(name, END)
            self._until_ended(stage.attempt(name))
        self._pass(LAST_MINUTES)

    def _until_ended(self, training_job: str) -> None:
        described = self._stage.described
        self._wait(
            f"{training_job} has ended", lambda: described(training_job)["SecondaryStatus"] != "Training"
        )

    def _wait(self, what: str, holds: Callable[[], object]) -> None:
        """Wait for processes of this machine, while the twin's clock stands still."""
        self._stage.until(what, holds, moves_clock=False)

    def _note(self) -> None:
        stage, facts = self._stage, self._facts
        views = list(filter(None, map(stage.view, GOVERNED)))
        made = [attempt["training_job_name"] for view in views for attempt in view["attempts"]]
        records = stage.twin.records()
        facts["jobs"] = {view["name"]: view for view in views}
        facts["log_lines"] = {name: stage.lines(name) for name in made}
        facts["unmanaged"] = governed.stopped_job(records, UNTAGGED)
        facts["violations"] = stage.api.violations()["violations"]
        stalled_at = governed.trained_until(records, STALLED, minutes=STALL_MINUTE)
        host_stalled_at = governed.trained_until(records, ONE_HOST_BUSY, minutes=STALL_MINUTE)
        facts["idle"] = governed.reaction(records, STALLED, event="Job Idle", began_at=stalled_at)
        facts["underused"] = governed.reaction(
            records, ONE_HOST_BUSY, event="Job Underused", began_at=host_stalled_at
        )
        facts["loss"] = governed.reaction(
            records, DIVERGED, event="Job Loss Warning", began_at=facts.pop("nan_at")
        )
        facts["stops"] = governed.stops(records)
        facts["alarms_at_the_end"] = governed.idle_alarms(stage.client("cloudwatch"))
        facts |= governed.billed(stage.control("GET", "/training-jobs")["training_jobs"], made)
        facts |= governed.ledger(stage.api, views)
        types = sorted({training_job["instance_type"] for training_job in facts["training_jobs"]})
        facts["prices"] = {name: float(PriceTable().usd_per_hour(name) or 0) for name in types}

    def _go_on_without_pools(self) -> None:
        self._say("PUT /policy     the same rules, and no pools at all")
        policy = self._stage.api.put_policy(governed_jobs.WITHOUT_POOLS)["policy"]
        self._say("boto3           untagged-late: without the required tag")
        self._start_plainly(LATE)
        self._pass(SETTLE_MINUTES)
        violations = self._stage.api.violations()["violations"]
        self._facts["without_pools"] = {
            "policy": policy,
            "stopped": governed.stopped_job(self._stage.twin.records(), LATE),
            "violations": [record for record in violations if record["training_job_name"] == LATE],
        }


def check(report: Report) -> None:
    """Check what the demo must have shown, from its facts alone."""
    sections = (_rules, _adopted, _idle, _underused, _loss, _ends, _ledger, _without_pools)
    for name, expected, actual, *ok in chain.from_iterable(section(report.facts) for section in sections):
        report.check(name, expected=expected, actual=actual, ok=ok[0] if ok else None)


def _rules(facts: Document) -> Iterator[Row]:
    refused = facts["refused"]
    rules = sorted(error["rule"] for error in refused.get("errors", ()))
    expected = {"status": 422, "rules": ["max_runtime", "required_tags"]}
    yield "refused", expected, {"status": refused.get("status"), "rules": rules}
    yield "unmanaged-stopped", *governed.promptly(facts["unmanaged"])
    reported = governed.reported(facts["violations"], UNTAGGED)
    yield "unmanaged-reported", ["stopped, max_runtime, required_tags"], reported


def _adopted(facts: Document) -> Iterator[Row]:
    plain, view, alarms = facts["jobs"][PLAIN], facts["adopted_view"] or {}, facts["alarms_at_work"]
    expected = {"reported": ["adopted"], "state": "running", "alarm": "OK"}
    reported = governed.reported(facts["violations"], PLAIN)
    yield "adopted", expected, {"reported": reported, "state": view.get("state"), "alarm": alarms.get(PLAIN)}
    first, *later = plain["attempts"]
    hours = governed.hours_in(facts["training_jobs"], first["training_job_name"], "Training")
    failure = governed.failure_class(first)
    yield (
        "network-failure-retried",
        f"class network after {governed_jobs.MIN_RUNTIME_HOURS} hours and more, one retry, completed",
        f"class {failure} after {hours:.2f} hours, {len(later)} retries, {plain['state']}",
        (failure, len(later), plain["state"]) == ("network", 1, "completed")
        and hours >= governed_jobs.MIN_RUNTIME_HOURS,
    )
    stored = sorted(facts["checkpoints_at_failure"].values())
    lines = [line for attempt in later for line in facts["log_lines"][attempt["training_job_name"]]]
    resumed = sorted({line.rpartition("sha256=")[2] for line in lines if line.startswith("resumed from")})
    yield "retried-from-checkpoint", stored, resumed, stored == resumed != []


def _idle(facts: Document) -> Iterator[Row]:
    stalled = facts["jobs"][STALLED]
    yield from governed.reacted("idle", facts["idle"], governed_jobs.IDLE_WITHIN)
    yield "stopped-as-idle", ["stopped", "idle"], [stalled["state"], stalled["reason"]["code"]]
    stopped = sorted([DIVERGED, ONE_HOST_BUSY, SPOT, STALLED, UNTAGGED])
    yield "busy-left-alone", stopped, facts["stops"]
    yield "alarms-gone", {}, facts["alarms_at_the_end"]


def _underused(facts: Document) -> Iterator[Row]:
    """Check that a host below the least utilization ends its attempt, which is no idle one, for another."""
    job = facts["jobs"][ONE_HOST_BUSY]
    first, *later = job["attempts"]
    yield from governed.reacted("underused", facts["underused"], governed_jobs.UNDERUSED_WITHIN)
    expected = ["underused-requeue", 1, "completed"]
    yield "underused-requeued", expected, [first["reason"]["code"], len(later), job["state"]]


def _loss(facts: Document) -> Iterator[Row]:
    job = facts["jobs"][DIVERGED]
    yield from governed.reacted("loss", facts["loss"], governed_jobs.LOSS_WITHIN)
    yield "stopped-by-loss", ["stopped", "loss-not-finite"], [job["state"], job["reason"]["code"]]


def _ends(facts: Document) -> Iterator[Row]:
    bug, spot = facts["jobs"][BUG], facts["jobs"][SPOT]
    first, count = bug["attempts"][0], len(bug["attempts"])
    failure, advice = governed.failure_class(first), (first["diagnosis"] or {}).get("advice")
    yield (
        "bug-not-retried",
        "failed after 1 attempt, class user-code, with advice",
        f"{bug['state']} after {count} attempt, class {failure}, advice: {advice}",
        (bug["state"], count, failure) == ("failed", 1, "user-code") and bool(advice),
    )
    (job,) = [training_job for training_job in facts["training_jobs"] if training_job["name"] == SPOT]
    statuses = [transition["status"] for transition in job["transitions"]]
    kinds = [attempt["capacity_type"] for attempt in spot["attempts"]]
    ends = {"attempts": ["spot", "on-demand"], "state": "completed"}
    yield (
        "spot-ends-on-demand",
        {"interruptions": MAX_INTERRUPTIONS + 1, **ends},
        {"interruptions": statuses.count("Interrupted"), "attempts": kinds, "state": spot["state"]},
    )


def _ledger(facts: Document) -> Iterator[Row]:
    billed, ledger = facts["twin_billed_instance_seconds"], facts["ledger_instance_seconds"]
    yield "ledger-time", billed, ledger, 0 < billed == ledger
    training_jobs, prices = facts["training_jobs"], facts["prices"]
    expected = round(sum(governed.usd(training_job, prices) for training_job in training_jobs), 2)
    actual = round(sum(line["usd"] for usage in facts["ledger"] for line in usage["jobs"]), 2)
    is_close = abs(expected - actual) <= CENT_USD * len(training_jobs)
    yield "ledger-money", expected, actual, expected > 0 and is_close


def _without_pools(facts: Document) -> Iterator[Row]:
    late = facts["without_pools"]
    reported = governed.reported(late["violations"], LATE)
    yield "no-pools", [], late["policy"].get("pools", [])
    yield "unmanaged-stopped-without-pools", *governed.promptly(late["stopped"])
    yield "unmanaged-reported-without-pools", ["stopped, required_tags"], reported


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="governance"))
