"""Jobs on GPUs, their alarms, and what CloudWatch says of them."""

import json
from datetime import timedelta
from typing import Any

from trainmaster.core.jobs.attempts import Attempt

from local.cloudwatch.metrics import Metric
from tests.faults.scenes import trains
from tests.integration.messages import ACCOUNT
from tests.integration.world import World

GPU = "ml.g5.xlarge"
PREFIX = "trainmaster-trainmaster-"


def gpu_policy(hosts: int = 2, *, then: str = "stop", **sections: Any) -> dict[str, Any]:
    """Idle for 15 minutes, warned for 10."""
    idle = {"gpu_below_percent": 1, "for": "15m", "period": "5m", "then": then, "warn_first": "10m"}
    return {"pools": [{"name": "main", "capacity": {GPU: hosts}}], "idle": idle} | sections


def gpu_hosts(count: int) -> dict[str, Any]:
    return {"InstanceType": GPU, "InstanceCount": count, "VolumeSizeInGB": 10}


def watched_job(world: World, name: str = "job1", *, hosts: int = 1, **request: Any) -> None:
    """It trains, and has its alarms."""
    assert world.submit(name, ResourceConfig=gpu_hosts(hosts), **request)["status"] == 201
    world.schedule()
    trains(world, name)
    world.schedule()
    assert idle_alarm(name) in alarms(world)


def idle_alarm(training_job_name: str, kind: str = "idle") -> str:
    return f"{PREFIX}{kind}-{training_job_name}"


def alarms(world: World) -> set[str]:
    """The names of all there are."""
    pages = world.cloud.client("cloudwatch").get_paginator("describe_alarms")
    answers = pages.paginate(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    found = (one for page in answers for one in [*page["MetricAlarms"], *page["CompositeAlarms"]])
    return {one["AlarmName"] for one in found}


def goes(world: World, training_job_name: str, state: str, kind: str = "idle") -> None:
    """CloudWatch changes the state of its alarm; nobody hears of it."""
    name = idle_alarm(training_job_name, kind)
    world.cloud.client("cloudwatch").set_alarm_state(AlarmName=name, StateValue=state, StateReason="a test")


def hears_of(world: World, training_job_name: str, *, kind: str = "idle", says: str = "ALARM") -> None:
    hears(world, message(idle_alarm(training_job_name, kind), says=says))


def hears(world: World, text: str) -> None:
    """A message of the alarm topic."""
    world.call("on_idle_alarm", {"Records": [{"Sns": {"Message": text}}]})


def message(alarm_name: str, *, says: str = "ALARM", account: str = ACCOUNT) -> str:
    """As CloudWatch writes them, without what nobody reads."""
    content = {
        "AlarmName": alarm_name,
        "AWSAccountId": account,
        "NewStateValue": says,
        "NewStateReason": "Threshold Crossed",
        "AlarmArn": f"arn:aws:cloudwatch:us-east-1:{account}:alarm:{alarm_name}",
    }
    return json.dumps(content)


def work(world: World, training_job_name: str, *percent: float | None, minutes: int) -> None:
    """CloudWatch measures one GPU of each host, and evaluates; None: the host is silent."""
    cloudwatch = world.cloud.cloudwatch
    for _ in range(minutes):
        for number, value in enumerate(percent, start=1):
            if value is not None:
                host = frozenset({("Host", f"{training_job_name}/algo-{number}")})
                metric = Metric(
                    namespace="/aws/sagemaker/TrainingJobs", name="GPUUtilization", dimensions=host
                )
                cloudwatch.put(metric, value, at=world.now, unit="Percent")
        world.now += timedelta(minutes=1)
        cloudwatch.evaluate(world.now)


def state_of(world: World, training_job_name: str, kind: str = "idle") -> str:
    name = idle_alarm(training_job_name, kind)
    (found,) = world.cloud.client("cloudwatch").describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return str(found["StateValue"])


def live(world: World, name: str = "job1") -> Attempt:
    attempt = world.job(name).live
    assert attempt is not None, f"{name} is not live"
    return attempt
