"""The training program under the launcher, laid out as SageMaker does it."""

import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.integration.training.launches import Ended, Host, ended, free_port, lines_until

pytestmark = pytest.mark.thorough

# As the SDK v2 writes them: all values are texts, and what was one before is quoted.
TINY = {
    "preset": '"tiny"',
    "sequence_length": "32",
    "batch_size": "4",
    "steps": "6",
    "checkpoint_every": "2",
    "export": "false",
    "sagemaker_program": '"train.py"',
    "sagemaker_region": '"us-east-1"',
}


def losses(*attempts: Ended) -> dict[int, str]:
    lines = [line for one in attempts for line in one.lines]
    found = (re.match(r"metric step=(\d+) loss=(\S+)", line) for line in lines)
    return {int(one[1]): one[2] for one in found if one}


def two_hosts(folder: Path) -> list[Host]:
    meeting = {"SM_MASTER_ADDR": "127.0.0.1", "SM_MASTER_PORT": free_port()}
    names = ["algo-1", "algo-2"]
    hosts = []
    for name in names:
        host = Host.with_program(folder / name, NPROC_PER_NODE="1", LAUNCH_STOP_SECONDS="60", **meeting)
        host.tell("resourceconfig", {"current_host": name, "hosts": names, "network_interface_name": "lo"})
        host.tell("checkpointconfig", {"LocalPath": str(host.base / "checkpoints")})
        host.tell("hyperparameters", TINY)
        hosts.append(host)
    return hosts


def run_all(hosts: list[Host]) -> list[Ended]:
    return [ended(process) for process in [host.start() for host in hosts]]


def stop_all(hosts: list[Host], words: str) -> list[Ended]:
    processes = [host.start() for host in hosts]
    lines = lines_until(processes[0], words)
    for process in processes:
        process.send_signal(signal.SIGTERM)
    first, *rest = [ended(process) for process in processes]
    return [Ended(code=first.code, lines=lines + first.lines, errors=first.errors), *rest]


def files(host: Host) -> set[str]:
    root = host.base / "checkpoints"
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def mirror(hosts: list[Host]) -> None:
    """As SageMaker does between attempts: every host gets what all hosts have written."""
    for source in hosts:
        for target in hosts:
            if source is not target:
                shutil.copytree(source.base / "checkpoints", target.base / "checkpoints", dirs_exist_ok=True)


def test_T16_two_hosts_stop_and_go_on_from_the_union_of_what_they_wrote(tmp_path: Path) -> None:
    hosts = two_hosts(tmp_path)
    for host in hosts:
        host.tell("hyperparameters", {**TINY, "min_step_seconds": "0.3"})
    stopped = stop_all(hosts, "metric step=3 ")
    assert [one.code for one in stopped] == [143, 143], [one.errors for one in stopped]
    status = hosts[0].status
    assert (status["state"], status["lost_steps"]) == ("preempted", 0)
    assert "status.json" not in files(hosts[1])
    shards = [{name for name in files(host) if name.endswith(".distcp")} for host in hosts]
    assert all(shards)
    assert not shards[0] & shards[1]

    mirror(hosts)
    for host in hosts:
        host.tell("hyperparameters", TINY)
    resumed = run_all(hosts)
    assert [one.code for one in resumed] == [0, 0], [one.errors for one in resumed]
    assert min(losses(*resumed)) == status["step"] + 1
    assert sorted(losses(*stopped, *resumed)) == [1, 2, 3, 4, 5, 6]
    assert (hosts[0].status["state"], hosts[0].status["step"]) == ("completed", 6)

    for host in hosts:
        host.tell("hyperparameters", {**TINY, "batch_size": "3", "sagemaker_program": '"train.py"'})
    refused = run_all(hosts)
    assert [one.code for one in refused] == [1, 1]
    for host in hosts:
        assert "batch_size 3 does not divide by 2 ranks" in host.failure
        assert len(host.failure) <= 1024


def test_T09_a_stop_during_import_leaves_the_old_checkpoint_as_it_was(tmp_path: Path) -> None:
    host = Host.with_program(tmp_path, NPROC_PER_NODE="2", LAUNCH_STOP_SECONDS="60")
    host.tell("hyperparameters", {**TINY, "steps": "2"})
    assert host.run().code == 0
    before = {name: (host.base / "checkpoints" / name).read_bytes() for name in files(host) - {"status.json"}}
    (host.code / "importing.py").write_text(
        "import runpy\nprint('importing', flush=True)\nrunpy.run_path('train.py', run_name='__main__')\n"
    )
    host.tell("hyperparameters", {**TINY, "steps": "4", "sagemaker_program": '"importing.py"'})
    stopped = host.stop_at("importing", times=2)
    assert stopped.code == 143, stopped.errors
    assert losses(stopped) == {}
    assert host.status["state"] == "preempted"
    assert host.status["step"] == 2
    after = {name: (host.base / "checkpoints" / name).read_bytes() for name in files(host) - {"status.json"}}
    assert after == before
    assert not (host.base / "output/failure").exists()


SAVES_FOR_TWO_SECONDS = """
import os, pathlib, signal, sys, time
def save(*_):
    time.sleep(2)
    pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "saved").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.long
@pytest.mark.parametrize(("seconds", "left"), [("1", []), ("110", ["saved"])])
def test_torchrun_waits_for_a_save_as_long_as_its_variable_says(
    tmp_path: Path, seconds: str, left: list[str]
) -> None:
    checkpoints = tmp_path / "checkpoints"
    variables = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": seconds, "SM_CHECKPOINT_DIR": str(checkpoints)}
    host = Host.with_script(tmp_path, SAVES_FOR_TWO_SECONDS, **variables)
    torchrun = ["-m", "torch.distributed.run", "--standalone", str(host.code / "train.py")]
    process = host.start(sys.executable, *torchrun)
    lines_until(process, "ready")
    process.send_signal(signal.SIGTERM)
    assert ended(process).code == 1
    assert [path.name for path in checkpoints.iterdir()] == left


@pytest.mark.long
def test_T19_fifty_starts_and_ends_of_two_ranks_are_in_order(tmp_path: Path) -> None:
    """Gloo's threads abort some processes at their exit unless the program leaves in order."""
    host = Host.with_program(tmp_path, NPROC_PER_NODE="2")
    for number in range(50):
        host.tell("hyperparameters", {**TINY, "steps": str(number + 1), "checkpoint_every": "0"})
        done = host.run()
        assert done.code == 0, (number, done.errors)
        assert sorted(losses(done)) == [number + 1]
