"""Stories of where a job lands: which of its shapes, which warm pool."""

import json

from tests.e2e.plane import INSTANCE_TYPE, Document
from tests.scenarios.stage import A_MOMENT, Stage, policy_of

SECOND_TYPE = "ml.c5.2xlarge"
MAX_WAIT_SECONDS = 6 * 3600
"""Of a job that the planner makes a spot job, above its run time: the policy's default."""

ALTERNATIVES_POLICY = policy_of(capacity={INSTANCE_TYPE: 1}, spot_capacity={SECOND_TYPE: 2})


def alternatives_pinned(stage: Stage) -> None:
    """The first shape of a job is taken, so it runs in the second: two spot instances of another type."""
    stage.submit("taken", options={"trainmaster:preemptible": "false"})
    stage.until_state(taken="running")
    stage.submit(
        "flexible",
        options={"trainmaster:alternatives": f"{INSTANCE_TYPE}=1 {SECOND_TYPE}=2:spot"},
        HyperParameters={"sagemaker_instance_type": json.dumps(INSTANCE_TYPE)},
        **stage.checkpoints_of("flexible"),
    )
    stage.until_state(flexible="running")
    view = stage.look("flexible")
    seen = [view["instances"], view["capacity_type"]]
    stage.check("the job says what it holds", expected=[{SECOND_TYPE: 2}, "spot"], actual=seen)
    (asked,) = [
        one["params"]
        for one in stage.plane.calls("CreateTrainingJob")
        if one["params"]["TrainingJobName"] == "flexible"
    ]
    resources, stopping = asked["ResourceConfig"], asked["StoppingCondition"]
    pinned = [resources["InstanceType"], resources["InstanceCount"]]
    stage.check("SageMaker was asked for the second shape", expected=[SECOND_TYPE, 2], actual=pinned)
    stage.check("as a spot job", expected=True, actual=asked["EnableManagedSpotTraining"])
    extra = stopping["MaxWaitTimeInSeconds"] - stopping["MaxRuntimeInSeconds"]
    stage.check("that may wait as long as the policy says", expected=MAX_WAIT_SECONDS, actual=extra)
    told = asked["HyperParameters"]["sagemaker_instance_type"]
    stage.check("the SDK's note of the type follows", expected=json.dumps(SECOND_TYPE), actual=told)


LANDING_POLICY = policy_of(capacity={INSTANCE_TYPE: 2}, warm_pool={"keep_alive": "10m"})
SMALL, LARGE = {"VolumeSizeInGB": 10}, {"VolumeSizeInGB": 20}
"""Jobs with volumes of different sizes cannot use each other's warm pools."""


def land_in_warm_pool(stage: Stage) -> None:
    """Of two equal jobs the one whose warm pool the urgent one can use makes room, and it starts there."""
    for name, resources in (("same-key", SMALL), ("other-key", LARGE)):  # of equals the last would be stopped
        stage.submit(name, priority=1, resources=resources, **stage.checkpoints_of(name))
        stage.advance(A_MOMENT)
    stage.submit("spectator", priority=0, resources=SMALL)
    stage.until_state(other_key="running", same_key="running")
    stage.advance(60)
    for name in ("other-key", "same-key"):
        stage.save_checkpoint(name)
    stage.advance(360)
    stage.submit("urgent", priority=9, resources=SMALL)
    stage.until_state(urgent="running")
    stage.advance(A_MOMENT)
    stage.check("the one with the same key made room", expected=["same-key"], actual=stage.stopped())
    left, taken = stage.described("same-key"), stage.described("urgent")
    stage.check(
        "its warm pool went to the urgent job",
        expected={"Status": "Reused", "ReusedByJob": "urgent"},
        actual={key: left.get("WarmPoolStatus", {}).get(key) for key in ("Status", "ReusedByJob")},
    )
    stage.check("which runs on it", expected="InUse", actual=_warmth(taken))


def _warmth(described: Document) -> str | None:
    status: str | None = described.get("WarmPoolStatus", {}).get("Status")
    return status


KEEPING_POLICY = policy_of(
    capacity={INSTANCE_TYPE: 1}, warm_pool={"keep_alive": "5m", "retain": "0s", "max_idle": "30m"}
)


def warm_extend_release(stage: Stage) -> None:
    """A warm pool is kept, longer than it would last, while a job waits for it; given up when nobody does."""
    stage.submit("first")
    stage.until_state(first="running")
    stage.did("PUT", "/policy/paused", {"paused": True})
    stage.submit("second")
    stage.finish("first")
    pool = stage.pool()
    stage.check("the end left a warm pool", expected={INSTANCE_TYPE: 1}, actual=pool["warm"]["on-demand"])
    stage.advance(10 * 60)
    stage.check(
        "after twice its time it is still there",
        expected="Available",
        actual=_warmth(stage.described("first")),
    )
    longer = [one for one in _updates(stage, "first") if one > 300]
    stage.check("because it was told to stay", expected="more than 300 s", actual=longer, ok=bool(longer))
    stage.did("PUT", "/policy/paused", {"paused": False})
    stage.until_state(second="running")
    stage.advance(A_MOMENT)
    stage.check("the job that waited runs on it", expected="Reused", actual=_warmth(stage.described("first")))
    stage.finish("second")
    stage.advance(60)
    stage.check("nobody waits: it was given up", expected=[0], actual=_updates(stage, "second")[-1:])
    stage.check("and is gone", expected="Terminated", actual=_warmth(stage.described("second")))
    stage.check("nothing is warm", expected={}, actual=stage.pool()["warm"]["on-demand"])


WORTH_POLICY = policy_of(capacity={INSTANCE_TYPE: 1}, warm_pool={"keep_alive": "10m", "retain": "worth"})
FOLLOWING = 4
"""Jobs that follow each other before instances are kept for the next one."""


def warm_by_worth(stage: Stage) -> None:
    """Idle instances are given up until jobs are known to follow, then kept, and given up when none comes."""

    def run(name: str) -> None:
        stage.submit(name)
        stage.until_state(**{name: "running"})
        stage.until(lambda: _trains(stage, name), f"{name} trains")
        stage.finish(name)
        stage.until_state(**{name: "completed"})

    run("job0")
    stage.advance(A_MOMENT)
    stage.check("no job is known to come: given up", expected=[0], actual=_updates(stage, "job0"))
    for number in range(1, FOLLOWING + 1):
        run(f"job{number}")
    last = f"job{FOLLOWING}"
    stage.check("jobs follow: it is kept", expected="Available", actual=_warmth(stage.described(last)))
    why = [kept["because"] for kept in stage.pool()["warm_pools"]]
    says = len(why) == 1 and why[0].startswith("kept for ") and "a warm start saves" in why[0]
    stage.check("and the pool says why", expected="kept for ..., a warm start saves ...", actual=why, ok=says)
    run("follows")
    stage.check("the next job ran on it", expected="Reused", actual=_warmth(stage.described(last)))
    stage.check("which is kept as well", expected="Available", actual=_warmth(stage.described("follows")))
    stage.advance(5 * 60)
    stage.check("no job came: it was given up", expected=[0], actual=_updates(stage, "follows"))
    stage.check("and is gone", expected="Terminated", actual=_warmth(stage.described("follows")))
    because = [gone.get("because") or "" for gone in stage.did("GET", "/timeline")["warm"]]
    says = [because[0].endswith("no job is known to come that can use it"), "so late" in because[-1]]
    stage.check("the timeline says why, of the first and the last", expected=[True, True], actual=says)


def _trains(stage: Stage, training_job: str) -> bool:
    return bool(stage.plane.described(training_job)["SecondaryStatus"] == "Training")


def _updates(stage: Stage, training_job: str) -> list[int]:
    """What UpdateTrainingJob said of its keep-alive, in seconds."""
    return [
        one["params"]["ResourceConfig"]["KeepAlivePeriodInSeconds"]
        for one in stage.plane.calls("UpdateTrainingJob")
        if one["params"]["TrainingJobName"] == training_job
    ]
