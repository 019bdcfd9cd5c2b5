"""Jobs that start with the launcher: what the twin gives such a job is what SageMaker gives it."""

import io
import json
import tarfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.launcher import LAUNCHER

import training
from tests.integration.local.running_twin import FIXTURE, RunningTwin, eventually, running_twin
from tests.integration.local.sagemaker_world import BUCKET, World, manual_clock, open_world, python, request
from tests.integration.local.test_sagemaker_script_mode import channel, script_job

LAUNCH = (Path(training.__file__).parent / "launch.py").read_text(encoding="utf-8")
SAVES = """
import os, pathlib, signal, sys, time
folder = pathlib.Path(os.environ["SM_CHECKPOINT_DIR"])
def save(*_):
    (folder / "saved").write_text(" ".join(sys.argv[1:]))
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
(folder / "ready").write_text(os.environ["MASTER_PORT"])
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def world(tmp_path):
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def test_a_job_with_an_entrypoint_gets_no_unpacked_code(world: World):
    looks = python(
        "import os, pathlib; code = pathlib.Path(os.environ['SM_MODEL_DIR']).parent / 'code'; "
        "print(sorted(os.listdir(code)))"
    )
    changes = script_job(world, {"train.py": ""})
    world.train_to_end("job", looks, HyperParameters=changes["HyperParameters"])
    assert world.logs.messages("job") == ["[]"]


def test_code_in_a_channel_hears_sigterm_and_saves(world: World):
    """As the SDK v3 leaves it: the launcher beside the script, in a channel called code."""
    for name, text in {"launch.py": LAUNCH, "train.py": SAVES}.items():
        world.store.write(BUCKET, f"code/{name}", text.encode())
    world.train(
        "job",
        LAUNCHER,
        InputDataConfig=[channel("code", "code") | {"InputMode": "File"}],
        HyperParameters={"lr": '"1e-3"'},
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/ckpt"},
    )
    world.wait_for_line("job", "ready")
    world.stop("job")
    world.wait_until("job", "Uploading")
    world.advance(40)
    assert world.finished("job")["SecondaryStatus"] == "Stopped"
    assert world.process_events("job")[-1] == ("exit", None, 143)
    assert world.store.objects[BUCKET]["ckpt/saved"] == b"--lr 1e-3"
    assert json.loads(world.store.objects[BUCKET]["ckpt/status.json"])["state"] == "preempted"


def test_a_source_directory_without_the_launcher_fails_the_job_with_what_to_do(world: World):
    world.store.write(BUCKET, "code/train.py", b"")
    world.train_to_end("job", LAUNCHER, InputDataConfig=[channel("code", "code")])
    reason = world.describe("job")["FailureReason"]
    assert reason.startswith(
        "AlgorithmError: launch.py is not in the source directory: trainmaster training-code"
    )


def test_what_a_job_installs_goes_with_its_container(world: World):
    says = python("import os, sys; print(os.environ['PIP_TARGET'] in sys.path, os.environ['PIP_TARGET'])")
    world.train_to_end("job", says)
    (line,) = world.logs.messages("job")
    assert line.startswith(f"True {world.work_dir}/job/")


@pytest.fixture
def twin(tmp_path: Path):
    with running_twin(tmp_path, template=FIXTURE, manual=True) as twin:
        yield twin


def archive() -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        for name, text in {"launch.py": LAUNCH, "train.py": SAVES}.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return body.getvalue()


def test_code_in_s3_is_fetched_with_the_keys_of_the_job(twin: RunningTwin):
    """As the SDK v2 leaves it."""
    s3, sagemaker, bucket = twin.client("s3"), twin.client("sagemaker"), twin.ready.bucket
    s3.put_object(Bucket=bucket, Key="code/sourcedir.tar.gz", Body=archive())

    def has(key: str) -> bool:
        try:
            s3.head_object(Bucket=bucket, Key=key)
        except ClientError:
            return False
        return True

    def status() -> str:
        return str(sagemaker.describe_training_job(TrainingJobName="job")["SecondaryStatus"])

    directory = json.dumps(f"s3://{bucket}/code/sourcedir.tar.gz")
    changes = {
        "RoleArn": twin.ready.role_arn,
        "HyperParameters": {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": directory},
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/output"},
        "CheckpointConfig": {"S3Uri": f"s3://{bucket}/ckpt"},
    }
    sagemaker.create_training_job(**(request("job", LAUNCHER) | changes))
    twin.advance(100)
    assert eventually(lambda: has("ckpt/ready"))
    sagemaker.stop_training_job(TrainingJobName="job")
    assert eventually(lambda: status() == "Uploading")
    twin.advance(40)
    assert eventually(lambda: status() == "Stopped")
    assert has("ckpt/saved")
