"""Jobs as the SageMaker SDK asks for them: a script in an archive, channels, hyperparameters, checkpoints."""

import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.local.sagemaker_world import (
    BUCKET,
    World,
    fast_clock,
    manual_clock,
    open_world,
    request,
)

REPORTS = """
import json, os, pathlib, sys
config = pathlib.Path(os.environ["SM_INPUT_CONFIG_DIR"])
report = {
    "arguments": sys.argv[1:],
    "folder": sorted(os.listdir(".")),
    "interpreter": sys.prefix,
    "hyperparameters": json.loads((config / "hyperparameters.json").read_text()),
    "resources": json.loads((config / "resourceconfig.json").read_text()),
    "inputs": json.loads((config / "inputdataconfig.json").read_text()),
    "train": sorted(
        path.relative_to(os.environ["SM_CHANNEL_TRAIN"]).as_posix()
        for path in pathlib.Path(os.environ["SM_CHANNEL_TRAIN"]).rglob("*.csv")
    ),
    "restored": sorted(os.listdir(os.environ["SM_CHECKPOINT_DIR"])),
}
pathlib.Path(os.environ["SM_MODEL_DIR"], "report.json").write_text(json.dumps(report))
pathlib.Path(os.environ["SM_CHECKPOINT_DIR"], "step-2").write_text("two")
"""


@pytest.fixture
def quick(tmp_path):
    with open_world(tmp_path, fast_clock()) as world:
        yield world


@pytest.fixture
def world(tmp_path):
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def script_job(world: World, files: dict[str, str], **hyperparameters: str) -> dict[str, Any]:
    """Changes that make a request one of script mode, as the SDK writes it."""
    archive = world.put_source("code/job/source/sourcedir.tar.gz", files)
    algorithm = request("job")["AlgorithmSpecification"]
    del algorithm["ContainerEntrypoint"]
    return {
        "AlgorithmSpecification": algorithm,
        "HyperParameters": {
            "sagemaker_program": json.dumps(next(iter(files))),
            "sagemaker_submit_directory": json.dumps(archive),
            "sagemaker_job_name": '"job"',
            "sagemaker_region": '"us-east-1"',
            **hyperparameters,
        },
    }


def channel(name: str, prefix: str) -> dict[str, Any]:
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"s3://{BUCKET}/{prefix}",
        "S3DataDistributionType": "ShardedByS3Key",
    }
    return {"ChannelName": name, "DataSource": {"S3DataSource": source}}


def test_a_script_finds_everything_where_sagemaker_puts_it(quick: World):
    for key in ("data/train/a.csv", "data/train/deep/b.csv", "data/other/c.csv"):
        quick.store.write(BUCKET, key, b"1,2")
    quick.store.write(BUCKET, "ckpt/step-1", b"one")
    changes = script_job(quick, {"train.py": REPORTS, "room/part.py": ""}, lr="0.1", out='"/opt/ml/model"')
    quick.create(
        "job",
        **changes,
        InputDataConfig=[channel("train", "data/train")],
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/ckpt", "LocalPath": "/opt/ml/checkpoints"},
    )

    assert quick.finished("job").get("FailureReason") is None
    report = json.loads(quick.archive("output/job/output/model.tar.gz")["report.json"])
    model = report["hyperparameters"]["out"].strip('"')
    assert model.endswith("/opt/ml/model")
    assert report["arguments"] == ["--lr", "0.1", "--out", model]
    assert report["folder"] == ["room", "train.py"]
    assert report["hyperparameters"]["lr"] == "0.1"
    assert report["resources"]["hosts"] == ["algo-1"]
    assert report["resources"]["current_instance_type"] == "ml.m5.large"
    assert report["inputs"]["train"]["S3DistributionType"] == "ShardedByS3Key"
    assert report["train"] == ["a.csv", "deep/b.csv"]
    assert report["restored"] == ["step-1"]
    assert quick.store.objects[BUCKET]["ckpt/step-2"] == b"two"
    assert quick.describe("job")["HyperParameters"] == changes["HyperParameters"]


def test_a_script_runs_on_the_interpreter_of_the_twin(quick: World):
    quick.create("job", **script_job(quick, {"train.py": "import sys; print(sys.executable)"}))
    quick.finished("job")

    assert quick.logs.messages("job")[0].rsplit("/", 1)[0] == sys.executable.rsplit("/", 1)[0]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        pytest.param(
            "raise SystemExit(3)",
            "AlgorithmError: ExecuteUserScriptError:\nExitCode 3, exit code: 3",
            id="the toolkit tells the exit code",
        ),
        pytest.param(
            "import os; open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('why'); 1 / 0",
            "AlgorithmError: why, exit code: 1",
            id="the failure file of the script wins",
        ),
    ],
)
def test_a_script_that_fails_fails_the_job(quick: World, script, reason):
    quick.create("job", **script_job(quick, {"train.py": script}))

    assert quick.finished("job")["FailureReason"] == reason


def test_a_traceback_is_in_the_log(quick: World):
    quick.create("job", **script_job(quick, {"train.py": "1 / 0"}))
    quick.finished("job")

    assert quick.logs.messages("job")[-1] == "ZeroDivisionError: division by zero"


def test_an_archive_that_is_not_there_fails_the_job_before_training(quick: World):
    changes = script_job(quick, {"train.py": ""})
    quick.store.delete(BUCKET, "code/job/source/sourcedir.tar.gz")
    quick.create("job", **changes)

    shown = quick.finished("job")
    assert shown["FailureReason"].startswith("ClientError: Data download failed")
    assert quick.journal_lines() == []


def test_an_archive_may_hold_folders_and_links(quick: World, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "real.py").write_text("print('hello')", encoding="utf-8")
    (source / "train.py").symlink_to("real.py")
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        tar.add(source, arcname=".")
    changes = script_job(quick, {"train.py": ""})
    quick.store.write(BUCKET, "code/job/source/sourcedir.tar.gz", body.getvalue())
    quick.create("job", **changes)
    quick.finished("job")

    assert quick.logs.messages("job") == ["hello"]


def test_an_archive_that_leads_out_of_its_folder_fails_the_job(quick: World):
    quick.create("job", **script_job(quick, {"train.py": "", "../../evil.py": ""}))

    assert quick.finished("job")["FailureReason"].startswith("ClientError: Data download failed")


def test_a_shell_script_is_run_by_the_shell(quick: World):
    quick.create("job", **script_job(quick, {"run.sh": 'echo "$@" > $SM_MODEL_DIR/arguments'}, epochs="3"))
    quick.finished("job")

    assert quick.archive("output/job/output/model.tar.gz") == {"arguments": b"--epochs 3\n"}


def test_a_script_never_hears_sigterm_and_is_killed_after_the_grace(world: World):
    script = (
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True))\n"
        "pathlib.Path(os.environ['SM_MODEL_DIR'], 'a').write_text('saved before')\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
        "print('slept', flush=True)\n"
    )
    world.train("job", **script_job(world, {"train.py": script}))
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.advance(119)
    assert world.secondary("job") == "Stopping"
    world.advance(1)
    world.advance(40)

    assert world.finished("job")["SecondaryStatus"] == "Stopped"
    assert world.logs.messages("job") == ["ready"]
    assert world.archive("output/job/output/model.tar.gz") == {"a": b"saved before"}
    assert world.process_events("job")[1:] == [
        ("signal", "SIGTERM", None),
        ("signal", "SIGKILL", None),
        ("exit", None, 137),
    ]


def test_a_script_that_ends_by_itself_during_the_grace_ends_as_it_likes(world: World):
    script = "import time; print('ready', flush=True); time.sleep(0.5); raise SystemExit(5)"
    world.train("job", **script_job(world, {"train.py": script}))
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.wait_until("job", "Uploading")
    world.advance(40)

    assert world.finished("job")["SecondaryStatus"] == "Stopped"
    assert world.process_events("job")[-1] == ("exit", None, 5)


def test_checkpoints_go_to_s3_while_the_script_runs(world: World):
    script = (
        "import os, pathlib, time\n"
        "folder = pathlib.Path(os.environ['SM_CHECKPOINT_DIR'])\n"
        "(folder / 'a.tmp').write_text('1')\n"
        "(folder / 'a.tmp').rename(folder / 'a')\n"
        "time.sleep(60)\n"
    )
    world.train(
        "job", **script_job(world, {"train.py": script}), CheckpointConfig={"S3Uri": f"s3://{BUCKET}/ckpt"}
    )

    world.wait_for_object("ckpt/a", b"1")
    assert world.secondary("job") == "Training"


def test_torchrun_runs_the_script_and_its_workers_end_with_it(world: World):
    script = (
        "import os, time\n"
        "print(os.getpid(), os.getsid(0), flush=True)\n"
        "print('rank', os.environ['RANK'], flush=True)\n"
        "time.sleep(60)\n"
    )
    enabled = {"sagemaker_torch_distributed_enabled": "true"}
    world.train("job", **script_job(world, {"train.py": script}, **enabled))
    world.wait_for_line("job", "rank 0")
    world.twin.fail("job", "enough")

    assert world.finished("job")["FailureReason"] == "enough"
    worker, session = next(line for line in world.logs.messages("job") if line[0].isdigit()).split()
    assert worker == session, "torchrun starts workers in sessions of their own, out of reach of its group"
    assert not Path("/proc", worker).exists() or "Z" in Path("/proc", worker, "stat").read_text(
        encoding="utf-8"
    )
