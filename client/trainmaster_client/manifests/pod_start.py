"""Runs first in a pod: writes the files that SageMaker would have written, then runs the job's command.

The manifest carries it in a ConfigMap beside those files. It becomes the command by exec, so the launcher is
the first process where this was, and SIGTERM reaches it. It needs no other file, as the launcher.

* ``start.py COMMAND ...`` starts the job.
* ``start.py --stop`` is the preStop hook: SIGTERM for the launcher once it listens, then wait for its end.
* ``start.py --fetch`` is the init container of ``--channels init``: it copies the channels from S3.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

FILES = Path(__file__).resolve().parent
OPERATORS = (
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "LOCAL_",
    "GROUP_",
    "ROLE_",
    "PET_",
    "TORCHELASTIC_",
)
"""Variables that an operator sets for torchrun; the launcher counts its ranks itself."""
STOP = (signal.SIGTERM, signal.SIGINT)
STOP_SECONDS = 112.0  # of the 120 of grace; the launcher kills its ranks after 110
START_SECONDS = 5.0  # from a process to its signal handlers


def main(arguments: list[str], env: Mapping[str, str]) -> int | None:
    base = Path(env.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
    if arguments == ["--stop"]:
        return stop(base / "launcher.pid", STOP_SECONDS)
    if arguments == ["--fetch"]:
        return fetch(json.loads((FILES / "channels.json").read_text()), base / "input/data")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))  # else the first process ignores it
    write_files(base, env)
    if any("launch.py" in argument for argument in arguments):  # it lets in what was held back, others do not
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP)
    return os.execvpe(arguments[0], arguments, job_environment(env))  # noqa: S606  exec is the point


def write_files(base: Path, env: Mapping[str, str]) -> None:
    config = base / "input/config"
    config.mkdir(parents=True, exist_ok=True)
    for name in ("hyperparameters.json", "inputdataconfig.json", "checkpointconfig.json"):
        shutil.copyfile(FILES / name, config / name)
    resources = json.loads((FILES / "resourceconfig.json").read_text())
    here = {"current_host": resources["hosts"][node_rank(env)]}
    (config / "resourceconfig.json").write_text(json.dumps({**resources, **here}))
    (base / "launcher.pid").write_text(str(os.getpid()))  # exec keeps it


def node_rank(env: Mapping[str, str]) -> int:
    """Return the rank of the pod.

    PyTorchJob and hyperpodrun set RANK, Kubeflow Trainer PET_NODE_RANK; a Job has its index.
    """
    given = (env.get(name) for name in ("RANK", "PET_NODE_RANK", "JOB_COMPLETION_INDEX"))
    return int(next(filter(None, given), "0"))


def job_environment(env: Mapping[str, str]) -> dict[str, str]:
    kept = {name: text for name, text in env.items() if not name.startswith(OPERATORS)}
    first = env.get("MASTER_ADDR") or env.get("PET_MASTER_ADDR")
    if len(json.loads((FILES / "resourceconfig.json").read_text())["hosts"]) == 1:
        return kept
    if not first:
        sys.exit("start.py: neither MASTER_ADDR nor PET_MASTER_ADDR is set: which pod is the first?")
    return {**kept, "SM_MASTER_ADDR": first}


def stop(file: Path, seconds: float) -> int:
    """Stop the launcher; return 0 even if nothing runs, as the kubelet's own SIGTERM comes next anyway."""
    if not file.is_file():
        return 0
    pid, began = int(file.read_text()), time.monotonic()
    while is_alive(pid) and not hears(pid) and time.monotonic() < began + START_SECONDS:
        time.sleep(0.05)
    if is_alive(pid):
        os.kill(pid, signal.SIGTERM)
    while is_alive(pid) and time.monotonic() < began + seconds:
        time.sleep(0.2)
    return 0


def hears(pid: int) -> bool:
    """Tell whether the process has a handler for SIGTERM, which Linux shows as a bit of a mask."""
    caught = [line for line in lines(pid) if line.startswith("SigCgt:")]
    return bool(caught) and bool(int(caught[0].split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def is_alive(pid: int) -> bool:
    return any(line.startswith("State:") and "Z" not in line.split()[1] for line in lines(pid))


def lines(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []


def fetch(channels: Mapping[str, Mapping[str, str]], folder: Path) -> int:
    import boto3  # noqa: PLC0415  of the image, and only here

    s3 = boto3.client("s3")
    for name, place in channels.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        prefix = f"{place['prefix']}/".lstrip("/")  # a folder: train is not the beginning of trained
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=place["bucket"], Prefix=prefix):
            for key in (entry["Key"] for entry in page.get("Contents", ()) if not entry["Key"].endswith("/")):
                to = folder / name / key[len(prefix) :]
                to.parent.mkdir(parents=True, exist_ok=True)
                s3.download_file(place["bucket"], key, str(to))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
