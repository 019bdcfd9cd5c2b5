"""start.py in a pod: the launcher finds what it finds in SageMaker, hears SIGTERM, and is the first."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from trainmaster_client.manifests import Kind, pod_start

from tests.manifests import large_job, made
from tests.markdown import ROOT

PROGRAM = """\
import json, os, pathlib, signal, sys, time
def save(*_):
    pathlib.Path(os.environ["SM_MODEL_DIR"], "saved-" + os.environ["RANK"]).touch()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
told = {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "SM_CHANNEL_TRAIN")}
pathlib.Path(os.environ["SM_MODEL_DIR"], "began-" + told["RANK"]).write_text(json.dumps([told, sys.argv[1:]]))
time.sleep(60)
"""
OPERATOR = {"RANK": "0", "WORLD_SIZE": "1", "PET_NNODES": "1", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}


def pod(folder: Path, body: dict[str, Any]) -> Path:
    """The ConfigMap of a manifest as kubelet mounts it; the program to call."""
    files = made(body, kind=Kind.PYTORCHJOB, claim="fsx").documents[0]["data"]
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder / "start.py"


def started(start: Path, base: Path, *command: str, **env: str) -> subprocess.Popen[str]:
    own = {"PATH": os.environ["PATH"], "SAGEMAKER_BASE_DIR": str(base)}
    return subprocess.Popen(
        [sys.executable, start, *command],
        env=own | env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def stopped_by_hook(start: Path, base: Path) -> int:
    hook = started(start, base, "--stop")
    hook.communicate(timeout=20)
    return hook.returncode


def wait_for(*files: Path) -> None:
    deadline = time.monotonic() + 20
    while not all(one.exists() and one.stat().st_size for one in files) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(one.exists() for one in files)


def test_the_hook_stops_the_launcher_which_lets_its_ranks_save_and_exits_with_143(tmp_path: Path) -> None:
    base, source = tmp_path / "ml", tmp_path / "source"
    source.mkdir()
    (base / "model").mkdir(parents=True)
    (source / "launch.py").write_bytes((ROOT / "training/launch.py").read_bytes())
    (source / "train.py").write_text(PROGRAM)
    one = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 9}
    start = pod(tmp_path / "start", large_job(ResourceConfig=one))
    launcher = str(source / "launch.py")
    process = started(start, base, sys.executable, launcher, NPROC_PER_NODE="2", **OPERATOR)
    wait_for(*(base / f"model/began-{rank}" for rank in (0, 1)))
    told, options = json.loads((base / "model/began-1").read_text())
    assert stopped_by_hook(start, base) == 0
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 143, output
    assert {path.name for path in (base / "model").glob("saved-*")} == {"saved-0", "saved-1"}
    assert options == ["--preset", "llama2-7b", "--steps", "1000"]
    assert told == {
        "RANK": "1",
        "WORLD_SIZE": "2",  # the operator counts pods
        "MASTER_PORT": "7777",
        "SM_CHANNEL_TRAIN": f"{base}/input/data/train",
    }


@pytest.mark.parametrize(
    ("env", "host"),
    [
        pytest.param({"RANK": "1", "MASTER_ADDR": "job-master-0"}, "algo-2", id="PyTorchJob"),
        pytest.param({"PET_NODE_RANK": "1", "PET_MASTER_ADDR": "job-master-0"}, "algo-2", id="TrainJob"),
        pytest.param(
            {"RANK": "0", "MASTER_ADDR": "job-master-0", "LOCAL_RANK": "0"}, "algo-1", id="HyperPod"
        ),
    ],
)
def test_each_operator_says_which_host_this_is(env: dict[str, str], host: str, tmp_path: Path) -> None:
    start = pod(tmp_path / "start", large_job())
    tell = "import json, os; print(json.dumps(dict(os.environ)))"
    process = started(start, tmp_path, sys.executable, "-c", tell, **env)
    output, _ = process.communicate(timeout=20)
    told = json.loads(output)
    assert told["SM_MASTER_ADDR"] == "job-master-0"
    assert not {"RANK", "LOCAL_RANK", "MASTER_ADDR", "PET_MASTER_ADDR", "PET_NODE_RANK"} & told.keys()
    resources = json.loads((tmp_path / "input/config/resourceconfig.json").read_text())
    assert resources["current_host"] == host
    assert int((tmp_path / "launcher.pid").read_text()) == process.pid, "exec keeps the first process"


def test_several_hosts_without_a_first_one_are_refused(tmp_path: Path) -> None:
    process = started(pod(tmp_path / "start", large_job()), tmp_path, sys.executable, "-c", "")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1
    assert output.startswith("start.py: neither MASTER_ADDR nor PET_MASTER_ADDR is set")


def test_the_hook_waits_until_the_program_listens(tmp_path: Path) -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(15, signal.SIG_IGN)\n"  # as the first process of a container, without a handler
        "open(sys.argv[1], 'w').write('x')\n"
        "time.sleep(0.5)\n"
        "signal.signal(15, lambda *_: sys.exit(7))\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path / "began"]) as process:
        wait_for(tmp_path / "began")
        (tmp_path / "launcher.pid").write_text(str(process.pid))
        hook = started(pod(tmp_path / "start", large_job()), tmp_path, "--stop")
        assert process.wait(timeout=20) == 7
        hook.communicate(timeout=20)
        assert hook.returncode == 0


def test_where_nothing_runs_the_hook_has_nothing_to_do(tmp_path: Path) -> None:
    assert stopped_by_hook(pod(tmp_path / "start", large_job()), tmp_path) == 0


@mock_aws  # type: ignore[untyped-decorator]  # moto's
def test_the_init_container_copies_what_is_below_the_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="corpora")
    for key in ("pile/train/a.bin", "pile/train/more/b.bin", "pile/train/", "pile/trained.bin"):
        s3.put_object(Bucket="corpora", Key=key, Body=key.encode())
    assert pod_start.fetch({"train": {"bucket": "corpora", "prefix": "pile/train"}}, tmp_path) == 0
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {"train/a.bin", "train/more/b.bin"}
