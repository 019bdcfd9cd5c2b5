"""Train a small vision transformer on pictures, preempt it, and compare its losses with an undisturbed run.

It trains on tar shards (``make demo-vit``); somebody more urgent takes its instance, it resumes and ends.
"""

import contextlib
import io
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

import torch
from PIL import Image
from trainmaster_client.launcher import LAUNCHER

from demos.stage.command import Telling, run
from demos.stage.directions import Hold
from demos.stage.evidence import Document
from demos.stage.job_requests import Job, one_pool
from demos.stage.processes import ROOT, Program
from demos.stage.resumed import check_resumed, check_same_losses, steps_lost
from demos.stage.twin_stage import Stage, opened_stage, temporary_folder
from tools.training import prepare_images
from training.metrics import metrics_in, validation_in

JOB, CHANNEL = "vit", "pictures"
STEPS = 60
STOPPED_AT = 9
"""Step after which it waits until a more urgent job has its instance."""
TRAINING = ROOT / "training"
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
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def tell(telling: Telling) -> int:
    report, screen = telling.report, telling.screen
    with temporary_folder() as folder:
        data = shards(folder)
        with (
            _undisturbed(data, folder) as alone,
            opened_stage(telling, one_pool(1), pool="one pool with one instance") as stage,
        ):
            _play(stage, data)
            facts: Document = {"script": JOB, "title": "vision transformer"}
            facts["attempts"] = stage.attempts(
                JOB, lambda lines: {"losses": losses_of(lines), "validation": validations_of(lines)}
            )
            stage.wait_for("the undisturbed run is over", alone)
            lines = alone.lines()
        facts |= {"undisturbed": losses_of(lines), "undisturbed_validation": validations_of(lines)}
    facts["steps_lost"] = steps_lost(facts["attempts"])
    report.facts["scripts"] = [facts]
    check_resumed(report, facts)
    check_same_losses(report, facts, STEPS)
    seen = [validation for attempt in facts["attempts"] for validation in attempt["validation"]]
    report.check("vit-same-accuracy", expected=facts["undisturbed_validation"], actual=seen)
    for number, attempt in enumerate(facts["attempts"]):
        first, last = attempt["losses"][0], attempt["losses"][-1]
        screen.say(f"attempt {number}: steps {first[0]} to {last[0]}, loss {first[1]} to {last[1]}")
    return telling.finish()


def _play(stage: Stage, data: Path) -> None:
    hold, say = Hold(stage.folder, JOB), stage.screen.say
    stage.guard_training([JOB])
    say(f"  {JOB}: vit-nano on pictures in tar shards, {STEPS} steps")
    hold.at(STOPPED_AT)
    stage.api.add_job(_request(stage, data, hold))
    stage.name(JOB, JOB)
    stage.until(
        f"it has trained {STOPPED_AT} steps",
        lambda: len(losses_of(stage.lines(stage.attempt(JOB)))) >= STOPPED_AT,
    )
    say(f"It has trained {STOPPED_AT} steps. Somebody has something urgent.")
    stage.occupy("urgent")
    stage.until("it was preempted", lambda: stage.state(JOB) == "preempted")
    hold.release()
    stage.api.cancel("urgent")
    stage.until("it was completed", lambda: stage.state(JOB) == "completed")


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


def _undisturbed(data: Path, folder: Path) -> Program:
    """Run the same training outside of the twin, without a pause."""
    own = {
        "data": data / "train",
        "eval_data": data / "validation",
        "checkpoint_dir": folder / "undisturbed",
        "model_dir": folder / "model",
    }
    command = [sys.executable, "train.py", *(f"--{name}={value}" for name, value in (_OPTIONS | own).items())]
    log = folder / "undisturbed.log"
    return Program("the undisturbed run", command, log=log, cwd=TRAINING, env=_ONE_THREAD)


def _request(stage: Stage, data: Path, hold: Hold) -> Document:
    """Ask for one instance, the program under the launcher; program and shards go to S3 first."""
    bucket, store = stage.twin.ready["bucket"], stage.client("s3")
    store.put_object(Bucket=bucket, Key="code/vit.tar.gz", Body=_archive())
    for path in sorted(data.glob("*/*")):
        store.upload_file(str(path), bucket, f"data/{path.relative_to(data)}")
    program = {
        "sagemaker_program": "train.py",
        "sagemaker_submit_directory": f"s3://{bucket}/code/vit.tar.gz",
        "data": f"channel:{CHANNEL}",
        "eval_data": "channel:validation",
        "hold_file": str(hold.path),
    }
    job = Job(name=JOB, command=LAUNCHER, hyperparameters=_OPTIONS | program, environment=_ONE_THREAD)
    channels = {CHANNEL: "train", "validation": "validation"}
    return job.request(stage.twin.ready) | {
        "InputDataConfig": [_channel(name, f"s3://{bucket}/data/{part}/") for name, part in channels.items()]
    }


def _channel(name: str, uri: str) -> Document:
    source = {"S3DataType": "S3Prefix", "S3Uri": uri, "S3DataDistributionType": "FullyReplicated"}
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def _archive() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for path in sorted(TRAINING.rglob("*.py")):
            if "__pycache__" not in path.parts:
                tar.add(path, str(path.relative_to(TRAINING)))
    return packed.getvalue()


def losses_of(lines: Iterable[str]) -> list[list[str]]:
    """Return [step, loss] as they were printed, to the last digit."""
    return [[metrics["step"], metrics["loss"]] for line in lines if (metrics := metrics_in(line))]


def validations_of(lines: Iterable[str]) -> list[list[str]]:
    """Return [step, loss, accuracy] as they were printed."""
    validations = filter(None, map(validation_in, lines))
    keys = ("step", "val_loss", "val_accuracy")
    return [[validation[key] for key in keys] for validation in validations]


if __name__ == "__main__":
    raise SystemExit(run(tell, __doc__, report="vit"))
