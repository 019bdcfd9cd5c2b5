"""The launcher's bootstrap, as SageMaker starts it: it fetches the code and becomes launch.py."""

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trainmaster_client.launcher import LAUNCHER

from tests.integration.training.buckets import S3Server, s3_server

TELLS = (
    "import os, sys; print('code in', os.path.dirname(os.path.abspath(__file__)), sys.argv[1:], flush=True)"
)
"""In the place of launch.py."""


@dataclass(kw_only=True)
class Job:
    base: Path
    env: dict[str, str] = field(default_factory=dict)

    def tell(self, **hyperparameters: str) -> None:
        folder = self.base / "input/config"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "hyperparameters.json").write_text(json.dumps(hyperparameters))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        python, *program = LAUNCHER
        assert python == "python3"
        return subprocess.Popen(
            [sys.executable, *program, *arguments],
            env={**os.environ, "SAGEMAKER_BASE_DIR": str(self.base), **self.env},
            cwd=self.base,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and what it printed."""
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out.strip()

    @property
    def failure(self) -> str:
        return (self.base / "output/failure").read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    one = Job(base=tmp_path)
    one.tell()
    return one


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def archive(**files: str) -> bytes:
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{name}.py")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return body.getvalue()


def channel(job: Job, name: str, content: bytes) -> Path:
    """A file of the channel ``code``."""
    folder = job.base / "input/data/code"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_code_in_a_channel_stays_where_it_is_and_arguments_of_the_container_are_handed_on(job: Job) -> None:
    channel(job, "launch.py", TELLS.encode())
    assert job.run("--steps", "3") == (0, f"code in {job.base}/input/data/code ['--steps', '3']")


def test_an_archive_in_the_channel_is_unpacked(job: Job) -> None:
    channel(job, "my-source.tar.gz", archive(launch=TELLS))
    assert job.run() == (0, f"code in {job.base}/code []")


def test_under_network_isolation_the_sdk_v2_names_the_archive_in_the_channel(job: Job) -> None:
    packed = channel(job, "sourcedir.tar.gz", archive(launch=TELLS))
    job.tell(sagemaker_submit_directory=json.dumps(str(packed)))
    assert job.run() == (0, f"code in {job.base}/code []")


def test_the_archive_of_the_sdk_v2_comes_from_s3(job: Job, s3: S3Server) -> None:
    bucket = s3.new_bucket()
    s3.client().put_object(Bucket=bucket, Key="a/sourcedir.tar.gz", Body=archive(launch=TELLS))
    job.env = s3.env
    uri = json.dumps(f"s3://{bucket}/a/sourcedir.tar.gz")
    job.tell(sagemaker_submit_directory=uri, sagemaker_region='"eu-west-1"')
    assert job.run() == (0, f"code in {job.base}/code []")


def test_an_archive_that_is_not_there_fails_the_job_with_a_line_that_says_so(job: Job, s3: S3Server) -> None:
    job.env = s3.env
    job.tell(sagemaker_submit_directory=json.dumps(f"s3://{s3.new_bucket()}/gone.tar.gz"))
    assert job.run() == (1, "")
    assert job.failure.startswith("the source code cannot be fetched: ClientError: An error occurred (404)")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(b"no archive", "the source code cannot be fetched: ReadError: ", id="no archive"),
        pytest.param(
            archive(train=""),
            "launch.py is not in the source directory: "
            "trainmaster training-code DIR --launcher-only copies it",
            id="no launch.py in it",
        ),
    ],
)
def test_code_that_is_no_use_fails_the_job_with_a_line_that_says_so(
    job: Job, content: bytes, expected: str
) -> None:
    channel(job, "sourcedir.tar.gz", content)
    assert job.run() == (1, "")
    assert job.failure.startswith(expected)
    assert len(job.failure) <= 1024


def test_a_job_without_code_fails_with_a_line_that_says_so(job: Job) -> None:
    assert job.run() == (1, "")
    assert job.failure.startswith("the source code cannot be fetched: FileNotFoundError: ")


def test_a_stop_during_the_download_ends_it(job: Job) -> None:
    hangs = "import time\ndef client(*_, **__):\n    print('downloading', flush=True)\n    time.sleep(60)\n"
    (job.base / "boto3.py").write_text(hangs)  # found before the real one
    job.tell(sagemaker_submit_directory='"s3://bucket/sourcedir.tar.gz"')
    process = job.start()
    assert process.stdout is not None
    assert process.stdout.readline() == "downloading\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_a_stop_while_it_becomes_the_launcher_is_kept_for_it(job: Job) -> None:
    waits = (
        "import os, signal\n"
        "print('pending' if signal.SIGTERM in signal.sigpending() else 'nothing pending', flush=True)\n"
    )
    channel(job, "launch.py", waits.encode())
    sends = (
        "import os\n"
        "execv = os.execv\n"
        "def signalled(*words):\n"
        "    os.kill(os.getpid(), 15)\n"
        "    execv(*words)\n"
        "os.execv = signalled\n"
    )
    (job.base / "sitecustomize.py").write_text(sends)
    job.env = {"PYTHONPATH": str(job.base)}
    assert job.run() == (0, "pending")
