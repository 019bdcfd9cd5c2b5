"""``trainmaster account-check`` on a twin, in both worlds; with a right missing; interrupted."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.report import Report

from tests.account_check.golden import compare
from tests.e2e.plane import Document, Plane, running_plane

pytestmark = pytest.mark.long

POLICY: Document = {"version": 1}
COMMAND = (sys.executable, "-c", "from trainmaster_client.cli import main; main()", "account-check")
WAIT_SECONDS = 540.0
"""In the harsh world the first event of an end may come six minutes after it."""


@pytest.fixture(scope="module")
def kind(tmp_path_factory) -> Iterator[Plane]:
    with running_plane(tmp_path_factory.mktemp("kind"), policy=POLICY) as running:
        yield running


def command(plane: Plane, report: Path, *more: str, **changes: str) -> subprocess.Popen[str]:
    environment = {**os.environ, **plane.twin.environment(), **changes, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [*COMMAND, "--json", str(report), *more],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def checked(plane: Plane, folder: Path, *more: str, **changes: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report."""
    file = folder / "account-check.json"
    process = command(plane, file, *more, **changes)
    printed, _ = process.communicate(timeout=WAIT_SECONDS)
    assert file.exists(), printed
    return process.returncode, json.loads(file.read_text(encoding="utf-8"))


def by_id(report: dict[str, Any]) -> dict[str, Any]:
    return {check["id"]: check for check in report["checks"]}


def left(plane: Plane) -> dict[str, list[Any]]:
    """What of the check is still there."""
    jobs = plane.client("sagemaker").list_training_jobs(NameContains="trainmaster-check-", MaxResults=100)
    objects = plane.client("s3").list_objects_v2(
        Bucket=plane.twin.ready["bucket"], Prefix="trainmaster-check/"
    )
    return {
        "jobs": [
            one["TrainingJobName"]
            for one in jobs["TrainingJobSummaries"]
            if one["TrainingJobStatus"] == "InProgress"
            or one.get("WarmPoolStatus", {}).get("Status") == "Available"
        ],
        "rules": plane.client("events").list_rules(NamePrefix="trainmaster-check-")["Rules"],
        "queues": plane.client("sqs").list_queues(QueueNamePrefix="trainmaster-check-").get("QueueUrls", []),
        "objects": objects.get("Contents", []),
    }


NOTHING: dict[str, list[Any]] = {"jobs": [], "rules": [], "queues": [], "objects": []}


def test_in_the_kind_world_everything_agrees_and_nothing_is_left(kind: Plane, tmp_path: Path) -> None:
    kind.control("/quota", {"instance_type": "ml.m5.large", "capacity_type": "on-demand", "instances": 3})
    kind.control("/quota", {"instance_type": "ml.p5.48xlarge", "capacity_type": "on-demand", "instances": 0})
    now = datetime.now(UTC)
    window = {"from": (now - timedelta(hours=1)).isoformat(), "to": (now + timedelta(hours=9)).isoformat()}
    plan = {"name": "spring", "instance_type": "ml.p5.48xlarge", "instances": 1, "fee_usd": 100}
    arn = kind.control("/plan", {**plan, "windows": [window]})["arn"]
    code, report = checked(kind, tmp_path, "--plan", arn)
    checks = by_id(report)
    differing = {name: one["actual"] for name, one in checks.items() if one["ok"] is False}
    assert (code, differing) == (0, {})
    assert {name for name, one in checks.items() if one["ok"] is None} == {
        *("pending-gpu", "pending-spot", "pending-preferences", "gpu-metrics", "gpu-alarm", "pending-end"),
        *("customer-key", "private-api", "user-arn", "embedded-metrics", "operator-alarms", "dead-letters"),
        *("stop-grace", "plan-close", "plan-right"),
    }
    assert "in use: 1" in checks["plan-describe"]["actual"]
    assert "AccountLimitError" in checks["refused-quota-zero"]["actual"]
    assert left(kind) == NOTHING


def test_in_the_harsh_world_too_and_the_world_is_as_harsh_as_its_values(tmp_path: Path) -> None:
    with running_plane(tmp_path, "--world", "harsh", policy=POLICY) as harsh:
        code, report = checked(harsh, tmp_path)
        assert (code, [name for name, one in by_id(report).items() if one["ok"] is False]) == (0, [])
        assert by_id(report)["rate-create"]["actual"].count("ThrottlingException") == 1
        assert by_id(report)["refused-run-time"]["actual"].startswith("ResourceLimitExceeded")
        comparison = Report("harsh-world")
        compare(comparison, report["facts"]["measured"])
    assert {check.id for check in comparison.checks if check.ok is False} == set()
    assert {"max_runtime_seconds", "read_delay_seconds"} <= {
        check.id for check in comparison.checks if check.ok
    }


def test_a_missing_right_skips_its_facts_and_the_others_go_on(kind: Plane, tmp_path: Path) -> None:
    statements = [
        {"Effect": "Allow", "Action": ["sagemaker:*", "s3:*", "sqs:*", "iam:PassRole"], "Resource": "*"},
        {"Effect": "Deny", "Action": "sagemaker:UpdateTrainingJob", "Resource": "*"},
    ]
    iam = kind.client("iam")
    role = iam.create_role(RoleName="checker", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    iam.put_role_policy(RoleName="checker", PolicyName="rights", PolicyDocument=document)
    keys = kind.client("sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    _, report = checked(
        kind,
        tmp_path,
        AWS_ACCESS_KEY_ID=keys["AccessKeyId"],
        AWS_SECRET_ACCESS_KEY=keys["SecretAccessKey"],
        AWS_SESSION_TOKEN=keys["SessionToken"],
    )
    checks = by_id(report)
    assert checks["event-number"]["skipped"] in {
        "missing right: sqs:CreateQueue",
        "missing right: events:PutRule",
    }
    assert checks["unknown-name"]["skipped"] == "missing right: sagemaker:UpdateTrainingJob"
    assert checks["stop-training"]["ok"] is True
    assert checks["rate-describe"]["ok"] is True


def test_ctrl_c_leaves_nothing_running_and_what_was_killed_is_found_at_the_next_start(
    kind: Plane, tmp_path: Path
) -> None:
    killed = command(kind, tmp_path / "killed.json")
    assert killed.stdout is not None
    assert any("ends: started" in line for line in killed.stdout)
    killed.kill()
    killed.communicate()
    assert left(kind) != NOTHING

    interrupted = command(kind, tmp_path / "interrupted.json")
    assert interrupted.stdout is not None
    assert any("ends: started" in line for line in interrupted.stdout)
    interrupted.send_signal(signal.SIGINT)
    printed, _ = interrupted.communicate(timeout=60)
    assert interrupted.returncode == 130, printed
    assert left(kind) == NOTHING
    facts = json.loads((tmp_path / "interrupted.json").read_text(encoding="utf-8"))["facts"]
    assert any("rule" in text for text in facts["left_by_an_earlier_run"]["removed"])
