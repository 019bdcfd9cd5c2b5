"""The scene of ``make account-smoke`` and what it looks at, on a twin in the place of the deployed stack."""

from pathlib import Path

import boto3
import pytest
from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from demos.account_smoke import Scene, expected_alarms, note
from demos.deployed.account_looks import StackLooks
from tests.e2e.plane import IMAGE, running_plane

pytestmark = pytest.mark.long


def test_the_four_jobs_and_the_facts_of_a_stack_hold_on_the_twin(tmp_path: Path) -> None:
    policy = {"version": 1, "pools": [{"name": "smoke", "capacity": {INSTANCE_TYPE: 2}}]}
    with running_plane(tmp_path, policy=policy) as plane:
        ready = plane.twin.ready
        session = boto3.Session(
            ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"]
        )
        report = Report("account-smoke")
        scene = Scene(
            api=ApiClient(ready["api_url"], session),
            run="1122000000",
            request={"role": ready["role_arn"], "bucket": ready["bucket"], "image": IMAGE},
            facts=report.facts,
            look_seconds=0.3,
            longest_seconds=200.0,
        )
        scene.play(key=None)
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_ENDPOINT_URL", ready["endpoint_url"])
            looks = StackLooks(session=session, api_url=ready["api_url"], stack="trainmaster")
            queues = {
                url.rpartition("/")[2]: url
                for url in plane.client("sqs").list_queues()["QueueUrls"]
                if "deadletter" in url.lower().replace("-", "")
            }
            report.facts |= {
                "refusals": looks.refusals(),
                "metric_seconds": looks.metric_seconds(),
                "operator_alarms": looks.operator_alarms(),
                "dead_letters": looks.dead_letters(queues),
                "user_arn": {
                    "sts": plane.client("sts").get_caller_identity()["Arn"],
                    "api": scene.views["job1"]["submitted_by"],
                },
            }
    report.facts["expected_alarms"] = expected_alarms("trainmaster")
    note(report)
    failed = {check.id: check.actual for check in report.checks if check.ok is False}
    assert failed == {}
    assert {check.id for check in report.checks if check.ok is None} == {"customer-key"}
