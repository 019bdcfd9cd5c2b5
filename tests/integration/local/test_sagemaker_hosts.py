"""Jobs of several hosts: a process each, one end for all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import training
from local.sagemaker.cluster import Cluster
from tests.integration.local.sagemaker_world import (
    BUCKET,
    World,
    fast_clock,
    manual_clock,
    open_world,
    request,
    wait_for,
)
from tests.unit.local.sagemaker.test_jobs import a_job

GRACE_SECONDS = 120
WAIT_SECONDS = 40


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


@pytest.fixture
def quick(tmp_path) -> Iterator[World]:
    with open_world(tmp_path, fast_clock()) as world:
        yield world


def hosts(count: int) -> dict[str, Any]:
    return {"ResourceConfig": request("job")["ResourceConfig"] | {"InstanceCount": count}}


def events(world: World, host: str) -> list[tuple[str, str | None, int | None]]:
    return [
        (line["event"], line["signal"], line["exit_code"])
        for line in world.journal_lines()
        if line["host"] == host
    ]


def per_host(one: str, other: str) -> list[str]:
    """A command that is ``one`` on the first host and ``other`` elsewhere."""
    return ["sh", "-c", f'if [ "$SM_CURRENT_HOST" = algo-1 ]; then {one}; else {other}; fi']


def run_script(world: World, name: str, code: str | dict[str, str], **changes: Any) -> None:
    """In script mode: an entrypoint is short."""
    files = {"train.py": code} if isinstance(code, str) else code
    values = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": world.put_source("code.tar.gz", files),
        "sagemaker_torch_distributed_enabled": changes.pop("torchrun", False),
        **changes.pop("hyperparameters", {}),
    }
    algorithm = request(name)["AlgorithmSpecification"]
    del algorithm["ContainerEntrypoint"]
    quoted = {key: json.dumps(value) for key, value in values.items()}
    world.create(name, AlgorithmSpecification=algorithm, HyperParameters=quoted, **changes)


SEES_ITS_OWN = """
import json, os, pathlib
config = json.loads(pathlib.Path(os.environ["SM_INPUT_CONFIG_DIR"], "resourceconfig.json").read_text())
model = pathlib.Path(os.environ["SM_MODEL_DIR"])
model.joinpath(config["current_host"]).write_text(os.environ["SM_CURRENT_HOST"])
print(config["hosts"], sorted(one.name for one in model.iterdir()))
"""


def test_every_host_has_a_process_a_log_and_a_folder_of_its_own(quick: World):
    run_script(quick, "job", SEES_ITS_OWN, **hosts(3))
    shown = quick.finished("job")

    assert shown["TrainingJobStatus"] == "Completed"
    names = ["algo-1", "algo-2", "algo-3"]
    assert [events(quick, name) for name in names] == [[("start", None, None), ("exit", None, 0)]] * 3
    assert len({line["pid"] for line in quick.journal_lines()}) == 3
    assert sorted(quick.logs.messages("job")) == [f"{names} ['{name}']" for name in names]
    assert {stream.rsplit("-", 1)[0] for _, stream, _ in quick.logs.puts} == {f"job/{name}" for name in names}
    assert quick.archive("output/job/output/model.tar.gz") == {name: name.encode() for name in names}
    assert list(quick.work_dir.iterdir()) == []


def test_instance_groups_are_hosts_of_one_cluster(quick: World):
    groups = [
        {"InstanceGroupName": "readers", "InstanceType": "ml.c5.xlarge", "InstanceCount": 1},
        {"InstanceGroupName": "trainers", "InstanceType": "ml.m5.large", "InstanceCount": 2},
    ]
    command = ["sh", "-c", 'echo "$SM_CURRENT_HOST $SM_CURRENT_INSTANCE_GROUP $SM_CURRENT_INSTANCE_TYPE"']
    quick.create("job", command, ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 1})
    quick.finished("job")

    assert sorted(quick.logs.messages("job")) == [
        "algo-1 readers ml.c5.xlarge",
        "algo-2 trainers ml.m5.large",
        "algo-3 trainers ml.m5.large",
    ]


def test_a_job_is_not_done_before_all_its_hosts_are(world: World):
    world.train("job", per_host("exit 0", "sleep 60"), **hosts(2))
    wait_for(lambda: events(world, "algo-1")[-1:] == [("exit", None, 0)], "the first host ends")
    world.advance(60)

    assert world.secondary("job") == "Training"
    assert len(world.twin.training_jobs()[0]["pids"]) == 1
    assert world.twin.training_jobs()[0]["hosts"] == ["algo-1", "algo-2"]


def test_one_host_that_fails_fails_the_job_and_ends_the_others(quick: World):
    fails = "echo no data > /opt/ml/output/failure; exit 3"
    quick.create("job", per_host("echo mine > /opt/ml/output/failure; sleep 60", fails), **hosts(3))
    shown = quick.finished("job")

    assert shown["TrainingJobStatus"] == "Failed"
    assert shown["FailureReason"] == "AlgorithmError: no data\n, exit code: 3"
    assert events(quick, "algo-1") == [
        ("start", None, None),
        ("signal", "SIGKILL", None),
        ("exit", None, 137),
    ]
    assert quick.twin.training_jobs()[0]["pids"] == []


def test_sigterm_goes_to_every_host_and_all_have_their_grace(world: World):
    first = "trap 'echo 1 > $SM_MODEL_DIR/1; exit 1' TERM"
    other = "trap 'echo 2 > $SM_MODEL_DIR/2' TERM"
    command = per_host(first, other)
    command[-1] += "; echo ready; while :; do sleep 0.02; done"
    world.train("job", command, **hosts(2))
    wait_for(lambda: world.logs.messages("job").count("ready") == 2, "both are ready")
    world.stop("job")
    wait_for(lambda: ("exit", None, 1) in events(world, "algo-1"), "the first host ends")
    world.advance(GRACE_SECONDS - 1)
    assert world.secondary("job") == "Stopping"

    world.advance(1)
    world.wait_until("job", "Uploading")
    world.advance(WAIT_SECONDS)
    shown = world.finished("job")
    assert (shown["TrainingJobStatus"], shown["SecondaryStatus"]) == ("Stopped", "Stopped")
    assert [one[1] for one in events(world, "algo-1")] == [None, "SIGTERM", None]
    assert [one[1] for one in events(world, "algo-2")] == [None, "SIGTERM", "SIGKILL", None]
    assert world.archive("output/job/output/model.tar.gz") == {"1": b"1\n", "2": b"2\n"}


def test_checkpoints_of_all_hosts_meet_in_s3_and_come_back_to_each(quick: World):
    config = {"CheckpointConfig": {"S3Uri": f"s3://{BUCKET}/ckpt"}}
    command = ["sh", "-c", "ls $SM_CHECKPOINT_DIR | wc -l; echo x > $SM_CHECKPOINT_DIR/$SM_CURRENT_HOST"]
    for name in ("one", "two"):
        quick.create(name, command, **hosts(2), **config)
        quick.finished(name)

    assert sorted(quick.store.objects[BUCKET]) == ["ckpt/algo-1", "ckpt/algo-2"]
    assert [line.strip() for line in quick.logs.messages("one")] == ["0", "0"]
    assert [line.strip() for line in quick.logs.messages("two")] == ["2", "2"]


def test_spot_hosts_are_taken_away_together(world: World):
    spot = {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 1000, "MaxWaitTimeInSeconds": 3000},
    }
    world.train("job", ["sleep", "60"], **hosts(2), **spot)
    world.twin.spot("job", "interrupt")
    world.wait_until("job", "Interrupted")

    killed = ("exit", None, 137)
    wait_for(
        lambda: all(killed in events(world, name) for name in ("algo-1", "algo-2")), "both are taken away"
    )


def test_what_two_hosts_call_the_same_is_the_first_ones(quick: World):
    quick.create("job", ["sh", "-c", "echo $SM_CURRENT_HOST > $SM_MODEL_DIR/name"], **hosts(2))
    quick.finished("job")

    assert quick.archive("output/job/output/model.tar.gz") == {"name": b"algo-1\n"}


MEETS = """
import json, os, socket, time
host, port = os.environ["SM_MASTER_ADDR"], int(os.environ["SM_MASTER_PORT"])
if os.environ["SM_CURRENT_HOST"] == json.loads(os.environ["SM_HOSTS"])[0]:
    with socket.create_server((host, port)) as server:
        for _ in range(int(os.environ["SM_HOST_COUNT"]) - 1):
            connection, _ = server.accept()
            print("heard", connection.recv(100).decode(), flush=True)
else:
    while True:
        try:
            with socket.create_connection((host, port)) as connection:
                connection.sendall(os.environ["SM_CURRENT_HOST"].encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
"""


def test_hosts_meet_at_the_address_they_are_told_and_jobs_do_not_mix(quick: World):
    for name in ("one", "two"):
        run_script(quick, name, MEETS, **hosts(2))
    for name in ("one", "two"):
        assert quick.finished(name)["TrainingJobStatus"] == "Completed"
        assert quick.logs.messages(name) == ["heard algo-2"]


SUMS = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
mine = torch.tensor([2 ** dist.get_rank()])
dist.all_reduce(mine)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(mine), flush=True)
dist.destroy_process_group()
"""


@pytest.mark.long
def test_torch_of_a_script_adds_up_over_two_hosts(quick: World):
    """As the SDK asks for it: torchrun on every host."""
    run_script(quick, "job", SUMS, torchrun=True, **hosts(2))
    wait_for(lambda: quick.secondary("job") in {"Completed", "Failed"}, "job ends", patience_seconds=90)

    lines = [line for line in quick.logs.messages("job") if line.startswith("rank")]
    ranks = 2 * max(1, len(lines) // 2)
    assert sorted(lines) == [f"rank {rank} of {ranks} sum {2**ranks - 1}" for rank in range(ranks)]
    assert quick.describe("job")["TrainingJobStatus"] == "Completed"


@pytest.mark.long
def test_the_training_program_trains_on_two_hosts(quick: World):
    """Its checkpoints need a folder that all hosts share; its weights do not."""
    folder = Path(training.__file__).parent
    program = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")}
    options = {"preset": "tiny", "steps": 4, "checkpoint_every": 4}
    run_script(quick, "job", program, torchrun=True, hyperparameters=options, **hosts(2))
    wait_for(lambda: quick.secondary("job") in {"Completed", "Failed"}, "job ends", patience_seconds=90)

    assert quick.describe("job")["TrainingJobStatus"] == "Completed", quick.logs.messages("job")
    lines = quick.logs.messages("job")
    assert [line for line in lines if line.startswith("completed")] == ["completed step=4"]
    assert "metrics.json" in quick.archive("output/job/output/model.tar.gz")


def test_the_first_host_that_fails_is_told_at_once_and_gives_the_exit_code(world: World):
    heard: list[object] = []
    body = request("job") | hosts(3)
    cluster = Cluster(a_job(**body), world.outside(), world.folder)
    ends = [
        cluster._listener(one, lambda: heard.append("failure"), heard.append) for one in cluster._containers
    ]
    ends[1](0)
    assert heard == []
    ends[2](4)
    assert heard == ["failure"]
    ends[0](137)

    assert heard == ["failure", 4]
    assert cluster.failure_reason() == "AlgorithmError: , exit code: 4"
