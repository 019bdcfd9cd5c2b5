"""The program of docs/sdk-v3.md, as its reader runs it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
from trainmaster_client.api import ApiClient

from local.twin_process import TwinProcess

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 240


def test_the_program_of_the_guide_waits_for_its_queued_job(configured: TwinProcess, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "training", tmp_path / "training", ignore=shutil.ignore_patterns("__pycache__"))
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/examples/doors/train_queue.py")],
        cwd=tmp_path,
        env={**clean, **configured.environment()},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ended = ApiClient(configured.ready["api_url"], boto3.Session()).jobs(state="completed")["jobs"]
    (job,) = [one for one in ended if one["name"].startswith("queued-")]
    assert job["priority"] == 5
