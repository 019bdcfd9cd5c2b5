"""Pictures as tar shards, the job that trains on them, and somebody more urgent."""

import contextlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import boto3
import torch
from PIL import Image
from trainmaster_client.launcher import LAUNCHER

from demos.stage.evidence import Document
from demos.stage.job_requests import request
from local.twin_process import TwinProcess
from tools.training import prepare_images

ROOT = Path(__file__).parents[2]
TRAINING = ROOT / "training"
JOB, CHANNEL = "vit", "pictures"
STEPS = 60
_CLASSES, _EACH, _SIDE = 5, 24, 48
_OPTIONS = {
    "preset": "vit-nano",
    "classes": str(_CLASSES),
    "steps": str(STEPS),
    "batch_size": "16",
    "lr": "1e-3",
    "seed": "7",
    "checkpoint_every": "20",
    "eval_every": "30",
    "eval_batches": "0",
}


def shards(folder: Path) -> Path:
    """Make pictures of a colour and noise for each class, and shards of them with a validation share."""
    source = torch.Generator().manual_seed(7)
    for label in range(_CLASSES):
        colour = torch.rand(3, generator=source)
        place = folder / f"pictures/class-{label}"
        place.mkdir(parents=True)
        for number in range(_EACH):
            pixels = 255 * (0.5 * colour + 0.5 * torch.rand(_SIDE, _SIDE, 3, generator=source))
            Image.fromarray(pixels.to(torch.uint8).numpy()).save(place / f"{number}.jpg")
    folders = ["--input", str(folder / "pictures"), "--output", str(folder / "shards")]
    with contextlib.redirect_stdout(io.StringIO()):
        code = prepare_images.main([*folders, "--validation-share", "0.2", "--shard-bytes", "100000"])
    assert code == 0
    return folder / "shards"


def undisturbed(data: Path, folder: Path) -> "subprocess.Popen[bytes]":
    """Run the same training outside of the twin, without a pause; it prints to ``folder``'s log."""
    own = {
        "data": str(data / "train"),
        "eval_data": str(data / "validation"),
        "checkpoint_dir": str(folder / "undisturbed"),
        "model_dir": str(folder / "model"),
    }
    arguments = [part for name, text in (_OPTIONS | own).items() for part in (f"--{name}", text)]
    with (folder / "undisturbed.log").open("wb") as log:
        command = [sys.executable, "train.py", *arguments]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, cwd=TRAINING, env=env, stdout=log, stderr=subprocess.STDOUT)


def pictures_request(data: Path, twin: TwinProcess, hold: Path) -> Document:
    """Ask for one instance, the program under the launcher; program and shards go to S3 first.

    Args:
        data: The shards.
        twin: Where.
        hold: The file that says how far it may train.
    """
    bucket, store = twin.ready["bucket"], boto3.client("s3")
    store.put_object(Bucket=bucket, Key="code/vit.tar.gz", Body=_archive())
    for path in sorted(data.glob("*/*")):
        store.upload_file(str(path), bucket, f"data/{path.relative_to(data)}")
    program = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": f"s3://{bucket}/code/vit.tar.gz",
        "data": f"channel:{CHANNEL}",
        "eval_data": "channel:validation",
        "hold_file": str(hold),
    }
    channels = {CHANNEL: "train", "validation": "validation"}
    return request(JOB, twin, LAUNCHER) | {
        "HyperParameters": _OPTIONS | program,
        "InputDataConfig": [_channel(name, f"s3://{bucket}/data/{part}/") for name, part in channels.items()],
        "CheckpointConfig": {"S3Uri": f"s3://{bucket}/checkpoints/{JOB}"},
        "Environment": {"OMP_NUM_THREADS": "1"},
    }


def _channel(name: str, uri: str) -> Document:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def _archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path in _program():
            tar.add(path, str(path.relative_to(TRAINING)))
    return packed.getvalue()


def _program() -> Iterator[Path]:
    return (path for path in sorted(TRAINING.rglob("*.py")) if "__pycache__" not in path.parts)
