"""What the launcher makes of the files that SageMaker puts beside a job."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Self

import pytest

from training import launch
from training.launch import (
    Cpu,
    End,
    LaunchError,
    Outcome,
    command,
    cpu_shares,
    environment,
    host_cpus,
    hyperparameters,
    settle,
    status,
    training_hosts,
    watch,
    window_seconds,
    write_failure,
)
from training.monitoring import watchdog

HOSTS = ["algo-1", "algo-10", "algo-2"]
GROUPS = [
    {"instance_group_name": "decode", "instance_type": "ml.c6i.8xlarge", "hosts": ["algo-3"]},
    {"instance_group_name": "train", "instance_type": "ml.p5.48xlarge", "hosts": ["algo-2", "algo-1"]},
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "input/config").mkdir(parents=True)
    return tmp_path


def told(base: Path, name: str, content: object) -> None:
    (base / f"input/config/{name}.json").write_text(json.dumps(content))


def env_of(base: Path, **more: str) -> dict[str, str]:
    return environment({"SAGEMAKER_BASE_DIR": str(base), "NPROC_PER_NODE": "8", **more})


@pytest.mark.parametrize(
    ("resources", "wanted", "expected"),
    [
        pytest.param({}, "", ["localhost"], id="outside SageMaker this machine trains"),
        pytest.param({"hosts": HOSTS}, "", ["algo-1", "algo-2", "algo-10"], id="algo-2 comes before algo-10"),
        pytest.param({"instance_groups": GROUPS}, "", ["algo-1", "algo-2"], id="the group with accelerators"),
        pytest.param({"instance_groups": GROUPS}, "decode", ["algo-3"], id="the group that the job names"),
        pytest.param({"instance_groups": GROUPS[:1]}, "", ["algo-3"], id="the only group"),
    ],
)
def test_the_hosts_that_train(resources: dict[str, Any], wanted: str, expected: list[str]) -> None:
    assert training_hosts(resources, wanted) == expected


def test_a_group_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(LaunchError, match="TRAINING_GROUP is 'gpu'; the job has decode, train"):
        training_hosts({"instance_groups": GROUPS}, "gpu")


def test_texts_of_the_sdk_are_unquoted_and_everything_else_stays_as_written(base: Path) -> None:
    written = {
        "preset": '"tiny"',
        "name": '"a \\"b\\" \\u00e9"',
        "lr": "1e-3",
        "fp16": "true",
        "list": "[1, 2]",
        "plain": "text",
        "odd": '"a" or "b"',
        "steps": 60,
    }
    told(base, "hyperparameters", written)
    assert hyperparameters(env_of(base)) == {
        "preset": "tiny",
        "name": 'a "b" é',
        "lr": "1e-3",
        "fp16": "true",
        "list": "[1, 2]",
        "plain": "text",
        "odd": '"a" or "b"',
        "steps": "60",
    }


def test_the_script_and_its_arguments_come_from_the_sdk_v2(base: Path, tmp_path: Path) -> None:
    told(
        base,
        "hyperparameters",
        {"sagemaker_program": '"fit.py"', "sagemaker_region": "x", "lr": "1", "k": "3"},
    )
    (tmp_path / "fit.py").touch()
    assert command(env_of(base), tmp_path)[1:4] == ["fit.py", "-k", "3"]
    assert command(env_of(base), tmp_path)[4:6] == ["--lr", "1"]


def test_the_script_comes_from_the_drivers_channel_of_the_sdk_v3(base: Path, tmp_path: Path) -> None:
    (base / "input/data/sm_drivers").mkdir(parents=True)
    (base / "input/data/sm_drivers/sourcecode.json").write_text('{"entry_script": "src/fit.py"}')
    (tmp_path / "src").mkdir()
    (tmp_path / "src/fit.py").touch()
    assert command(env_of(base), tmp_path)[1] == "src/fit.py"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        pytest.param('"run.sh"', "run.sh is no Python script; a shell in between", id="a shell script"),
        pytest.param('"fit.py"', "there is no fit.py in ", id="a script that is not there"),
    ],
)
def test_a_script_that_cannot_be_run_is_refused(base: Path, program: str, message: str) -> None:
    told(base, "hyperparameters", {"sagemaker_program": program})
    with pytest.raises(LaunchError, match=message):
        command(env_of(base), base)


def test_a_worker_finds_what_the_toolkit_would_have_set(base: Path) -> None:
    told(base, "inputdataconfig", {"train-set": {}, "code": {}})
    told(base, "checkpointconfig", {"LocalPath": "/opt/ml/other"})
    resources = {"current_host": "algo-2", "hosts": HOSTS, "network_interface_name": "eth0"}
    told(base, "resourceconfig", resources)
    got = env_of(base)
    assert got["SM_MODEL_DIR"] == f"{base}/model"
    assert got["SM_OUTPUT_DATA_DIR"] == f"{base}/output/data"
    assert got["SM_CHECKPOINT_DIR"] == "/opt/ml/other"
    assert got["SM_CHANNEL_TRAIN_SET"] == f"{base}/input/data/train-set"
    assert json.loads(got["SM_CHANNELS"]) == ["code", "train-set"]
    assert json.loads(got["SM_HOSTS"]) == HOSTS
    assert got["SM_CURRENT_HOST"] == "algo-2"
    assert (got["WORLD_SIZE"], got["LOCAL_WORLD_SIZE"], got["GROUP_RANK"]) == ("24", "8", "1")
    assert (got["MASTER_ADDR"], got["MASTER_PORT"]) == ("algo-1", "7777")
    assert got["NCCL_SOCKET_IFNAME"] == got["GLOO_SOCKET_IFNAME"] == "eth0"
    assert (got["OMP_NUM_THREADS"], got["FI_EFA_USE_HUGE_PAGE"]) == ("1", "0")
    assert "TORCHINDUCTOR_CACHE_DIR" not in got


def test_what_the_job_sets_itself_wins_and_a_host_alone_meets_itself(base: Path) -> None:
    cache = {"SAGEMAKER_MANAGED_WARMPOOL_CACHE_DIRECTORY": "/cache"}
    got = env_of(base, OMP_NUM_THREADS="4", SM_MODEL_DIR="/else", SM_MASTER_PORT="20001", **cache)
    assert got["OMP_NUM_THREADS"] == "4"
    assert got["SM_MODEL_DIR"] == "/else"
    assert (got["MASTER_ADDR"], got["MASTER_PORT"]) == ("127.0.0.1", "20001")
    assert got["TORCHINDUCTOR_CACHE_DIR"] == "/cache/torchinductor"


def test_ranks_are_counted_in_the_group_that_trains(base: Path) -> None:
    told(base, "resourceconfig", {"current_host": "algo-2", "hosts": HOSTS, "instance_groups": GROUPS})
    assert (env_of(base)["WORLD_SIZE"], env_of(base)["GROUP_RANK"]) == ("16", "1")


@pytest.mark.parametrize("text", ["0", "0.5", "-1", "two", "nan", ""])
def test_a_number_of_ranks_that_is_none_is_refused(base: Path, text: str) -> None:
    with pytest.raises(LaunchError, match=f"NPROC_PER_NODE must be a number, 1 or more, not '{text}'"):
        env_of(base, NPROC_PER_NODE=text)


def test_a_file_of_sagemaker_that_cannot_be_read_is_named(base: Path) -> None:
    (base / "input/config/resourceconfig.json").write_text("{")
    with pytest.raises(LaunchError, match=r"resourceconfig.json cannot be read as a JSON object"):
        env_of(base)


STOPPED = Outcome(end=End.PREEMPTED, why="SIGTERM")


def left(base: Path, content: object) -> None:
    (base / "checkpoints").mkdir(exist_ok=True)
    (base / "checkpoints/status.json").write_text(json.dumps(content))


def test_the_end_is_written_into_the_status_and_how_far_training_came_stays(base: Path) -> None:
    before = {"state": "running", "step": 7, "checkpoint": "step-00000005", "checkpoint_at": "then"}
    left(base, before)
    assert settle(STOPPED, env_of(base), before) is End.PREEMPTED
    now = json.loads((base / "checkpoints/status.json").read_text())
    assert (now["state"], now["reason"]) == ("preempted", "SIGTERM")
    assert (now["step"], now["checkpoint"], now["checkpoint_at"]) == (7, "step-00000005", "then")


def test_an_end_of_this_attempt_stays_and_one_of_the_attempt_before_does_not(base: Path) -> None:
    of_the_program = {"state": "preempted", "reason": "saved step 9"}
    left(base, of_the_program)
    settle(STOPPED, env_of(base), {"state": "running"})
    assert json.loads((base / "checkpoints/status.json").read_text()) == of_the_program
    settle(Outcome(end=End.FAILED, why="new"), env_of(base), of_the_program)
    assert json.loads((base / "checkpoints/status.json").read_text())["reason"] == "new"


def test_a_program_that_was_done_before_the_signal_counted_has_completed(base: Path) -> None:
    left(base, {"state": "completed"})
    assert settle(STOPPED, env_of(base), {"state": "running"}) is End.COMPLETED
    assert settle(STOPPED, env_of(base), {"state": "completed"}) is End.PREEMPTED


def test_a_status_that_cannot_be_read_is_written_anew_and_without_a_checkpoint_it_says_none(
    base: Path,
) -> None:
    left(base, {})
    (base / "checkpoints/status.json").write_text("{")
    settle(STOPPED, env_of(base), {})
    now = json.loads((base / "checkpoints/status.json").read_text())
    assert (now["state"], now["step"], now["checkpoint"], now["checkpoint_at"]) == (
        "preempted",
        0,
        None,
        None,
    )


def test_hyperparameters_that_cannot_be_read_are_a_failure_told_like_any_other(base: Path) -> None:
    left(base, {"state": "running", "step": 7, "checkpoint": "step-00000005"})
    (base / "input/config/hyperparameters.json").write_text("{")
    assert settle(Outcome(end=End.FAILED, why="not JSON"), env_of(base), {}) is End.FAILED
    now = json.loads((base / "checkpoints/status.json").read_text())
    assert (now["state"], now["reason"], now["checkpoint"]) == ("failed", "not JSON", "step-00000005")


def test_where_no_status_can_be_written_the_end_is_the_same(base: Path) -> None:
    left(base, {"state": "running"})
    (base / "checkpoints/.status.json").mkdir()
    assert settle(STOPPED, env_of(base), {}) is End.PREEMPTED


def test_the_status_lies_in_the_folder_that_is_mirrored_unless_the_job_names_another(base: Path) -> None:
    assert status(env_of(base))[0] is None
    (base / "checkpoints").mkdir()
    assert status(env_of(base))[0] == base / "checkpoints/status.json"
    told(base, "hyperparameters", {"checkpoint_dir": '"s3://bucket/job"'})
    assert status(env_of(base))[0] == base / "checkpoints/status.json"
    told(base, "hyperparameters", {"checkpoint_dir": json.dumps(str(base / "other"))})
    assert status(env_of(base))[0] is None
    (base / "other").mkdir()
    assert status(env_of(base))[0] == base / "other/status.json"
    told(base, "hyperparameters", {"checkpoint-dir": json.dumps(str(base / "other"))})  # train.py takes both
    assert status(env_of(base))[0] == base / "other/status.json"


def test_other_hosts_leave_the_status_alone(base: Path) -> None:
    (base / "checkpoints").mkdir()
    told(base, "resourceconfig", {"current_host": "algo-2", "hosts": HOSTS})
    assert status(env_of(base))[0] is None


def test_the_failure_is_the_programs_own_and_a_crash_comes_before_what_others_made_of_it(
    tmp_path: Path,
) -> None:
    failed, crashed = (
        Outcome(end=End.FAILED, why="rank 1: x"),
        Outcome(end=End.FAILED, why="killed", is_crash=True),
    )
    assert write_failure(failed, tmp_path) == "rank 1: x"
    (tmp_path / "failure").write_text("its own words")
    assert write_failure(failed, tmp_path) == "its own words"
    assert write_failure(crashed, tmp_path) == "killed; then: its own words"
    (tmp_path / "failure").write_text("é" * 3000)
    write_failure(crashed, tmp_path)
    assert len((tmp_path / "failure").read_text()) == 1024


BLOCK_END = "SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"
NOW = 1_790_000_000.0


def until(seconds: float) -> str:
    """The variable for a window that ends so many seconds from now."""
    return str(round((NOW + seconds) * 1000))


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        pytest.param({}, inf, id="no training plan"),
        pytest.param({BLOCK_END: ""}, inf, id="an empty variable"),
        pytest.param({BLOCK_END: until(7200)}, 7200 - 1800 - 240, id="30 minutes and 4 before the end"),
        pytest.param({BLOCK_END: until(7200), "LAUNCH_WINDOW_SECONDS": "600"}, 4800, id="its own bound"),
        pytest.param({BLOCK_END: until(7200), "LAUNCH_WINDOW_SECONDS": "0"}, 5400, id="no time at all"),
        pytest.param({BLOCK_END: until(7200), "LAUNCH_WINDOW_SECONDS": "off"}, inf, id="not heard"),
        pytest.param({BLOCK_END: until(600)}, 0, id="the last half hour has begun"),
    ],
)
def test_ranks_are_asked_to_stop_before_the_window_of_a_plan_closes(
    env: dict[str, str], seconds: float
) -> None:
    left, warning = window_seconds(env, NOW)
    assert left == pytest.approx(seconds)
    assert warning == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0", id="zero, which AWS's own example takes for none"),
        pytest.param("soon", id="no number"),
        pytest.param("-1", id="a negative number"),
        pytest.param("1e13", id="an exponent"),
        pytest.param(str(round(NOW + 7200)), id="seconds for milliseconds"),
        pytest.param(str(round((NOW + 7200) * 1e6)), id="microseconds for milliseconds"),
        pytest.param("2026-12-01T08:00:00Z", id="a date"),
        pytest.param(until(-1), id="the past"),
        pytest.param("9" * 5000, id="a number without end"),
    ],
)
def test_an_end_that_makes_no_sense_is_ignored_with_a_warning(text: str) -> None:
    seconds, warning = window_seconds({BLOCK_END: text}, NOW)
    assert (seconds, warning.partition(" is ignored")[0]) == (inf, BLOCK_END)


@pytest.mark.parametrize("text", ["", "4m", "-1", "nan", "inf", "1" * 400])
def test_a_bound_that_makes_no_sense_is_ignored_with_a_warning(text: str) -> None:
    seconds, warning = window_seconds({BLOCK_END: until(7200), "LAUNCH_WINDOW_SECONDS": text}, NOW)
    assert seconds == pytest.approx(7200 - 1800 - 240)
    assert warning.startswith("LAUNCH_WINDOW_SECONDS is ignored: ")


def test_the_close_of_the_window_is_a_stop_unless_a_signal_came_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    monkeypatch.setattr("signal.pthread_sigmask", lambda *_: None)
    stop = launch.Stop()
    stop.closes_at = 5.0
    monkeypatch.setattr("time.monotonic", lambda: 4.0)
    assert (stop.asked_at, stop.why) == (inf, "SIGTERM")
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    assert (stop.asked_at, stop.why) == (5.0, "the window of the training plan closes")
    monkeypatch.setattr("time.monotonic", lambda: 4.5)
    stop._ask()
    monkeypatch.setattr("time.monotonic", lambda: 7.0)
    assert (stop.asked_at, stop.why) == (4.5, "SIGTERM")


@dataclass
class Gone:
    """A worker that has ended, and its process."""

    returncode: int

    @property
    def child(self) -> Self:
        return self

    def failure(self) -> Outcome:
        return Outcome(end=End.FAILED, why=str(self.returncode))


class Asked:
    asked_at, why = 1.0, "SIGTERM"


class NotAsked:
    asked_at, why = inf, "SIGTERM"


@pytest.mark.parametrize(
    ("codes", "stop", "expected"),
    [
        pytest.param([0, 0], NotAsked, Outcome(end=End.COMPLETED), id="all done"),
        pytest.param([0, 0], Asked, STOPPED, id="who was asked to stop may not have finished"),
        pytest.param([143, -15], Asked, STOPPED, id="stopped, one before it could hear"),
        pytest.param([143, 143], NotAsked, STOPPED, id="told by the ranks of other hosts"),
        pytest.param(
            [1, -9, 1], NotAsked, Outcome(end=End.FAILED, why="-9"), id="the killed one is the cause"
        ),
        pytest.param([143, 1], Asked, Outcome(end=End.FAILED, why="1"), id="one failed while it saved"),
        pytest.param(
            [143, -15], NotAsked, Outcome(end=End.FAILED, why="-15"), id="a signal of somebody else"
        ),
    ],
)
def test_what_the_ends_of_the_ranks_mean(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], stop: Any, expected: Outcome
) -> None:
    monkeypatch.setattr("training.launch.bury", lambda _: None)  # it would bury children of other tests
    monkeypatch.setattr("time.monotonic", lambda: 2.0)
    ranks: Any = [Gone(code) for code in codes]
    assert watch(ranks, stop, seconds=110) == expected


def test_exit_codes_are_those_that_the_guide_gives() -> None:
    assert {one.name: int(one) for one in End} == {"COMPLETED": 0, "FAILED": 1, "PREEMPTED": 143}


def _host(nodes: int, cores: int, threads: int = 1) -> list[Cpu]:
    """As Linux counts: first one hardware thread of each core, node by node, then the second ones."""
    return [
        Cpu(number=thread * nodes * cores + core, core=str(core), node=core // cores)
        for thread in range(threads)
        for core in range(nodes * cores)
    ]


@pytest.mark.parametrize(
    ("cpus", "ranks", "shares"),
    [
        pytest.param(_host(1, 4), 1, [[0, 1, 2, 3]], id="a rank has all cores"),
        pytest.param(_host(1, 2, threads=2), 1, [[0, 1]], id="one thread a core"),
        pytest.param(_host(2, 2, threads=2), 2, [[0, 1], [2, 3]], id="a rank a node"),
        pytest.param(_host(2, 2), 4, [[0], [1], [2], [3]], id="more ranks than nodes"),
        pytest.param(_host(1, 3), 2, [[0], [1, 2]], id="what does not divide"),
        pytest.param(_host(1, 1), 2, [[], [0]], id="more ranks than cores"),
        pytest.param(
            [
                Cpu(number=4, core="4", node=1),
                Cpu(number=5, core="5", node=0),
                Cpu(number=6, core="6", node=1),
            ],
            2,
            [[5], [4, 6]],
            id="neighbours stay together",
        ),
    ],
)
def test_the_cores_of_a_host_are_shared_among_its_ranks(
    cpus: list[Cpu], ranks: int, shares: list[list[int]]
) -> None:
    assert cpu_shares(cpus, ranks) == shares


def test_linux_is_asked_for_nodes_and_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in {
        "node/node0/cpulist": "0-1,4\n",
        "node/node1/cpulist": "2-3\n",
        "cpu/cpu0/topology/thread_siblings_list": "0,4\n",
        "cpu/cpu4/topology/thread_siblings_list": "0,4\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 2, 4})
    assert host_cpus(tmp_path) == [
        Cpu(number=0, core="0,4", node=0),
        Cpu(number=2, core="2", node=1),
        Cpu(number=4, core="0,4", node=0),
    ]


def test_a_host_that_says_nothing_has_a_core_for_each_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert cpu_shares(host_cpus(tmp_path), 1) == [[0, 1]]


def test_ranks_without_gpus_have_a_thread_for_each_of_their_cores(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "host_cpus", lambda: _host(2, 4, threads=2))
    found = {
        ranks: (env["LOCAL_WORLD_SIZE"], env["OMP_NUM_THREADS"])
        for ranks in ("1", "2", "numa", "16")
        if (env := env_of(base, NPROC_PER_NODE=ranks))
    }
    assert found == {"1": ("1", "8"), "2": ("2", "4"), "numa": ("2", "4"), "16": ("16", "1")}
    assert env_of(base, OMP_NUM_THREADS="3")["OMP_NUM_THREADS"] == "3"  # the job's own wins


def test_what_stands_beside_the_launcher_is_found_by_its_path_alone(tmp_path: Path) -> None:
    """A script's own package may be called monitoring, too: it is not imported."""
    shutil.copy(launch.__file__, tmp_path)
    (tmp_path / "monitoring").mkdir()
    (tmp_path / "monitoring/__init__.py").write_text("raise AssertionError('it was imported')")
    ask = [sys.executable, "-c", "import launch; print(launch.watchdog_beside() is not None)"]
    assert subprocess.check_output(ask, cwd=tmp_path, text=True) == "False\n"
    shutil.copy(watchdog.__file__, tmp_path / "monitoring")
    assert subprocess.check_output(ask, cwd=tmp_path, text=True) == "True\n"


@pytest.mark.parametrize(
    ("given", "largest"),
    [
        pytest.param({}, "2", id="not elastic"),
        pytest.param({"TRAINMASTER_WIDTHS": "1-8"}, "8", id="a range"),
        pytest.param({"TRAINMASTER_WIDTHS": "2-6:16"}, "6", id="the step is no width"),
        pytest.param({"TRAINMASTER_WIDTHS": "4 2 1"}, "4", id="a list"),
        pytest.param({"TRAINMASTER_WIDTHS": "1"}, "2", id="never less than there are"),
        pytest.param({"TRAINMASTER_WIDTHS": "any"}, "2", id="no numbers"),
        pytest.param({"TRAINMASTER_LARGEST_WIDTH": "16"}, "16", id="the job's own"),
    ],
)
def test_every_worker_knows_the_width_and_the_largest(
    base: Path, given: dict[str, str], largest: str
) -> None:
    told(base, "resourceconfig", {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"]})
    got = env_of(base, **given)
    assert (got["TRAINMASTER_WIDTH"], got["TRAINMASTER_LARGEST_WIDTH"]) == ("2", largest)


def test_the_width_is_counted_and_never_taken_from_the_job(base: Path) -> None:
    told(base, "resourceconfig", {"current_host": "algo-1", "hosts": ["algo-1", "algo-2"]})
    assert env_of(base, TRAINMASTER_WIDTH="9")["TRAINMASTER_WIDTH"] == "2"


def test_only_hosts_that_train_count_for_the_width(base: Path) -> None:
    resources = {"current_host": "algo-1", "instance_groups": GROUPS}
    told(base, "resourceconfig", resources)
    assert env_of(base)["TRAINMASTER_WIDTH"] == "2"
    told(base, "resourceconfig", {**resources, "current_host": "algo-3"})
    assert "TRAINMASTER_WIDTH" not in env_of(base)
