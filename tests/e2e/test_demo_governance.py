"""``make demo-governance`` as a user runs it; and each of its checks fails when its facts are other."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.report import Report

from demos.governance import check

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> dict[str, Any]:
    path: Path = tmp_path_factory.mktemp("governance") / "governance.json"
    command = [sys.executable, "-m", "demos.governance", "--json", str(path)]
    # Without a limit: a demo gives up by itself where nothing changes any more.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.long
def test_everything_that_the_demo_promises_happens(report):
    assert (report["schema"], report["name"], report["ok"]) == ("trainmaster.report/1", "governance", True)
    assert len(report["checks"]) == len(TAMPERED)


@pytest.mark.long
def test_only_the_plane_acts_on_what_the_user_did_not_ask_for(report):
    calls = [one for one in report["facts"]["journal"] if one["kind"] == "call"]
    callers = {(one["operation"], one["principal"].rpartition("/")[2]) for one in calls}
    assert callers == {
        ("CreateTrainingJob", "local-admin"),
        ("CreateTrainingJob", "schedule"),
        ("DeleteAlarms", "schedule"),
        ("POST /add-job", "local-admin"),
        ("PUT /policy", "local-admin"),
        ("Publish", "schedule"),
        ("PutEvents", "schedule"),
        ("PutMetricAlarm", "schedule"),
        ("StopTrainingJob", "schedule"),
        ("UpdateTrainingJob", "schedule"),  # it gives up warm pools that nobody is likely to use
    }


def refused_otherwise(facts: Facts) -> None:
    facts["refused"]["errors"].pop()


def stopped_late(facts: Facts) -> None:
    facts["unmanaged"]["stop_requested_at"] = facts["idle"]["stopped_at"]


def not_reported(facts: Facts) -> None:
    facts["violations"] = [one for one in facts["violations"] if one["training_job_name"] != "untagged"]


def without_alarm(facts: Facts) -> None:
    del facts["alarms_at_work"]["plain"]


def failed_early(facts: Facts) -> None:
    (plain,) = [one for one in facts["training_jobs"] if one["name"] == "plain"]
    plain["transitions"] = plain["transitions"][:3]


def resumed_elsewhere(facts: Facts) -> None:
    facts["checkpoints_at_failure"] = dict.fromkeys(facts["checkpoints_at_failure"], "another")


def warned_early(facts: Facts) -> None:
    facts["idle"]["warned_at"] = facts["idle"]["began_at"]


def never_stopped(facts: Facts) -> None:
    facts["idle"]["stopped_at"] = None


def underused_warned_at_once(facts: Facts) -> None:
    facts["underused"]["warned_at"] = facts["underused"]["began_at"]


def underused_runs_on(facts: Facts) -> None:
    facts["underused"]["stopped_at"] = None


def underused_stopped_for_good(facts: Facts) -> None:
    facts["jobs"]["one-host-busy"]["attempts"].pop()


def loss_unnoticed(facts: Facts) -> None:
    facts["loss"]["warned_at"] = None


def stopped_without_warning(facts: Facts) -> None:
    facts["loss"]["stopped_at"] = facts["loss"]["warned_at"]


def stopped_for_another_reason(facts: Facts) -> None:
    facts["jobs"]["diverged"]["reason"]["code"] = "idle"


def stopped_by_a_user(facts: Facts) -> None:
    facts["jobs"]["stalled"]["reason"]["code"] = "stopped-by-user"


def busy_one_stopped(facts: Facts) -> None:
    facts["stops"].append("busy")


def alarm_left(facts: Facts) -> None:
    facts["alarms_at_the_end"] = {"stalled": "ALARM"}


def bug_retried(facts: Facts) -> None:
    facts["jobs"]["bug"]["attempts"] *= 2


def stayed_on_spot(facts: Facts) -> None:
    facts["jobs"]["spot"]["attempts"][-1]["capacity_type"] = "spot"


def hour_missing(facts: Facts) -> None:
    facts["ledger_instance_seconds"] -= 3600


def dollar_missing(facts: Facts) -> None:
    facts["ledger"][0]["jobs"][0]["usd"] -= 1


def with_a_pool(facts: Facts) -> None:
    facts["without_pools"]["policy"]["pools"] = [{"name": "gpu"}]


def late_one_runs_on(facts: Facts) -> None:
    facts["without_pools"]["stopped"]["stop_requested_at"] = None


def late_one_not_reported(facts: Facts) -> None:
    facts["without_pools"]["violations"] = []


TAMPERED: dict[str, Callable[[Facts], None]] = {
    "refused": refused_otherwise,
    "unmanaged-stopped": stopped_late,
    "unmanaged-reported": not_reported,
    "adopted": without_alarm,
    "network-failure-retried": failed_early,
    "retried-from-checkpoint": resumed_elsewhere,
    "idle-warned": warned_early,
    "idle-stopped": never_stopped,
    "stopped-as-idle": stopped_by_a_user,
    "underused-warned": underused_warned_at_once,
    "underused-stopped": underused_runs_on,
    "underused-requeued": underused_stopped_for_good,
    "loss-warned": loss_unnoticed,
    "loss-stopped": stopped_without_warning,
    "stopped-by-loss": stopped_for_another_reason,
    "busy-left-alone": busy_one_stopped,
    "alarms-gone": alarm_left,
    "bug-not-retried": bug_retried,
    "spot-ends-on-demand": stayed_on_spot,
    "ledger-time": hour_missing,
    "ledger-money": dollar_missing,
    "no-pools": with_a_pool,
    "unmanaged-stopped-without-pools": late_one_runs_on,
    "unmanaged-reported-without-pools": late_one_not_reported,
}


@pytest.mark.long
@pytest.mark.parametrize("check_id", TAMPERED)
def test_each_check_fails_when_its_facts_are_other(report, check_id: str):
    again = Report(name="governance", facts=copy.deepcopy(report["facts"]))
    TAMPERED[check_id](again.facts)
    check(again)
    assert check_id in [one.id for one in again.checks if not one.ok]
    assert any(one.ok for one in again.checks)
