"""Train on a training plan until its window closes, resume on demand with equal losses: ``make demo-plan``.

Two jobs of the real training program do the same work. One runs on demand, undisturbed; the other runs on a
plan of one instance, is stopped before SageMaker ends the instances, and resumes on demand.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.report import Report

from demos.stage.command import Telling, run
from demos.stage.directions import Hold
from demos.stage.evidence import Document, losses_of
from demos.stage.job_requests import Job, one_pool
from demos.stage.resumed import check_resumed, check_same_losses, steps_lost
from demos.stage.training_archive import training_archive
from demos.stage.twin_stage import FINAL, Stage, opened_stage
from training.metrics import METRIC_DEFINITIONS

P5 = "ml.p5.48xlarge"
PLAN, FEE_USD = "spring", 96
WINDOW_HOURS, DRAIN_MINUTES, CLOSING_MINUTES = 2, 10, 30
STEPS, HELD_AT = 24, 9
UNDISTURBED, PLANNED = "undisturbed", "planned"
_KNOWN_MINUTES = 3
"""Time after which every function has read the policy and the plan."""
_OPTIONS = {
    "preset": "tiny",
    "steps": str(STEPS),
    "seed": "7",
    "batch_size": "4",
    "checkpoint_every": "6",
    "sagemaker_program": "train.py",
}


def tell(telling: Telling) -> int:
    report = telling.report
    with opened_stage(telling, one_pool(1, P5), pool="one pool, one instance on demand") as stage:
        scene = _Scene(stage)
        scene.buy()
        scene.submit()
        scene.close()
        scene.resume()
        report.facts |= scene.facts()
    check(report)
    return telling.finish()


class _Scene:
    def __init__(self, stage: Stage) -> None:
        self._stage, self._say = stage, stage.screen.say
        self._hold = Hold(stage.folder, PLANNED)
        self._arn = ""
        self._begin = datetime.now(UTC)
        stage.guard_training([UNDISTURBED, PLANNED])

    def buy(self) -> None:
        """Buy a plan whose window is open, and name it in the policy."""
        stage = self._stage
        self._begin = self._now()
        end = self._begin + timedelta(hours=WINDOW_HOURS)
        window = {"from": self._begin.isoformat(), "to": end.isoformat()}
        bought = stage.control(
            "POST", "/plan", name=PLAN, instance_type=P5, instances=1, windows=[window], fee_usd=FEE_USD
        )
        self._arn = str(bought["arn"])
        policy = one_pool(1, P5)
        policy["pools"][0]["plans"] = [{"arn": self._arn, "drain": f"{DRAIN_MINUTES}m"}]
        stage.api.put_policy(policy)
        stage.clock(_KNOWN_MINUTES)
        self._say(f"Plan {PLAN}: one {P5} for {WINDOW_HOURS} hours, {FEE_USD} USD; the pool counts it now.")

    def submit(self) -> None:
        """Start both jobs; the one on the plan waits after a step, and the other one ends."""
        stage, store = self._stage, self._stage.client("s3")
        bucket = str(stage.twin.ready["bucket"])
        store.put_object(Bucket=bucket, Key="code/train.tar.gz", Body=training_archive())
        self._hold.at(HELD_AT)
        stage.submit(self._job(UNDISTURBED, plan="never"))
        stage.submit(self._job(PLANNED, plan="first", hold_file=str(self._hold.path)))
        stage.until("the undisturbed job is done", lambda: stage.are(FINAL, [UNDISTURBED]))
        stage.until(f"{PLANNED} has trained {HELD_AT} steps", lambda: self._trained() >= HELD_AT)
        self._say(f"{PLANNED} has trained {HELD_AT} steps on the plan.")

    def close(self) -> None:
        """Let the time go on to the drain, and on until SageMaker would end the instances."""
        stage = self._stage
        closes = timedelta(hours=WINDOW_HOURS) - timedelta(minutes=CLOSING_MINUTES)
        drains = closes - timedelta(minutes=DRAIN_MINUTES)
        stage.clock(self._minutes_to(drains) - 1)
        first = stage.attempt(PLANNED)
        stage.until(
            "the queue stopped it before the window closes",
            lambda: stage.described(first)["TrainingJobStatus"] == "Stopped",
        )
        self._stopped_at = self._now() - self._begin
        self._say(f"{PLANNED} was stopped {self._stopped_at} after the window opened, and resumes on demand.")
        self._closes = closes

    def resume(self) -> None:
        """Let the job resume on demand, past the close of the window, and train to its end."""
        stage = self._stage
        self._hold.release()
        stage.until(f"{PLANNED} is done", lambda: stage.are(FINAL, [PLANNED]))
        stage.clock(max(self._minutes_to(timedelta(hours=WINDOW_HOURS)) + 5, 1))
        stage.look()

    def facts(self) -> Document:
        stage = self._stage
        attempts = stage.attempts(PLANNED, lambda lines: {"losses": losses_of(lines)})
        for attempt in attempts:
            described = stage.described(attempt["training_job_name"])
            attempt["plan"] = described["ResourceConfig"].get("TrainingPlanArn")
        undisturbed = stage.attempts(UNDISTURBED, lambda lines: {"losses": losses_of(lines)})
        job = stage.api.job(PLANNED, estimate=False)
        return {
            "plan": self._arn,
            "script": "plan",
            "attempts": attempts,
            "undisturbed": undisturbed[-1]["losses"],
            "steps_lost": steps_lost(attempts),
            "stopped_minutes_before_close": (self._closes - self._stopped_at) / timedelta(minutes=1),
            "reasons": _reasons(job),
            "preemptions": job["preemptions"],
            "described": self._plan_now(),
            "unused": stage.api.usage().get("unused_plan"),
        }

    def _plan_now(self) -> Document:
        shown = self._stage.sagemaker.describe_training_plan(TrainingPlanName=self._arn)
        return {"status": shown["Status"], "in_use": shown["InUseInstanceCount"]}

    def _job(self, name: str, *, plan: str, **options: str) -> "_PlanJob":
        bucket = self._stage.twin.ready["bucket"]
        where = {"sagemaker_submit_directory": f"s3://{bucket}/code/train.tar.gz"}
        return _PlanJob(
            name=name,
            command=LAUNCHER,
            instance_type=P5,
            hyperparameters=_OPTIONS | where | options,
            environment={"OMP_NUM_THREADS": "1"},
            tags={"trainmaster:plan": plan},
            max_runtime_seconds=10 * 3600,
        )

    def _trained(self) -> int:
        losses = losses_of(self._stage.lines(self._stage.attempt(PLANNED)))
        return losses[-1][0] if losses else 0

    def _now(self) -> datetime:
        return datetime.fromisoformat(str(self._stage.control("POST", "/clock", advance_seconds=0)["clock"]))

    def _minutes_to(self, after_begin: timedelta) -> float:
        return (self._begin + after_begin - self._now()) / timedelta(minutes=1)


class _PlanJob(Job):
    """A job whose program prints its metrics for SageMaker."""

    def request(self, place: Any) -> Document:  # noqa: ANN401  as of Job
        whole = super().request(place)
        algorithm = {**whole["AlgorithmSpecification"], "MetricDefinitions": METRIC_DEFINITIONS}
        return whole | {"AlgorithmSpecification": algorithm}


def _reasons(job: Document) -> Sequence[str]:
    """Return the codes of the reasons in the job's history, in order."""
    return [line["reason"]["code"] for line in job["history"] if line["reason"]]


def check(report: Report) -> None:
    """Check what the demo must have shown, from its facts alone."""
    facts = report.facts
    report.check(
        "plans", expected=[facts["plan"], None], actual=[attempt["plan"] for attempt in facts["attempts"]]
    )
    report.check("cause", expected="window", actual=facts["reasons"], ok="window" in facts["reasons"])
    report.check("not-a-preemption", expected=0, actual=facts["preemptions"])
    left = facts["stopped_minutes_before_close"]
    report.check(
        "stopped-in-time",
        expected=f"0 to {DRAIN_MINUTES} minutes before SageMaker ends the instances",
        actual=f"{left:.1f} minutes before",
        ok=0 < left <= DRAIN_MINUTES,
    )
    report.check("plan-is-free", expected={"status": "Expired", "in_use": 0}, actual=facts["described"])
    check_resumed(report, facts)
    check_same_losses(report, facts, STEPS)
    hours = sum(float(plan["instance_hours"]) for plan in facts["unused"] or ())
    report.check(
        "unused-hours",
        expected=f"some of {WINDOW_HOURS} hours",
        actual=f"{hours:.2f} hours",
        ok=0 < hours < WINDOW_HOURS,
    )


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="plan"))
