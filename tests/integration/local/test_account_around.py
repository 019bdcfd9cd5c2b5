"""The twin's account answers preflight's questions, and each part of it can be changed."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from trainmaster_client.preflight.account_reading import AccountReader
from trainmaster_client.preflight.target_account import Concurrency, Known, StudioDomain, Unknown

from local.account.account_answers import SERVICES, STUDIO_CALLS, AccountAround
from local.wire import AwsError, Principal
from tests.integration.local.bare_twin import REGION, BareTwin, bare_twin


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("account")) as made:
        yield made


@pytest.fixture
def account(twin: BareTwin) -> AccountAround:
    around = AccountAround(account_id=twin.account_id, region=REGION)

    def quotas(_operation: str, _params: dict[str, Any], _caller: Principal) -> dict[str, Any]:
        return around.with_warm_pools({"Quotas": []})

    for service in SERVICES:
        twin.door.mount_service(service, around.call)
    twin.door.mount_service("sagemaker", around.call, owns=lambda operation, _: operation in STUDIO_CALLS)
    twin.door.mount_service("service-quotas", quotas)
    return around


@pytest.fixture
def reader(twin: BareTwin, monkeypatch: pytest.MonkeyPatch) -> AccountReader:
    monkeypatch.setenv("AWS_ENDPOINT_URL", twin.door.endpoint_url)
    keys = twin.admin
    session = boto3.Session(
        aws_access_key_id=keys.access_key_id,
        aws_secret_access_key=keys.secret_access_key,
        region_name=REGION,
    )
    return AccountReader(session)


def test_a_new_twin_stands_for_a_healthy_account(account: AccountAround, reader: AccountReader) -> None:
    read = reader.read(stack="trainmaster", principals=["arn:aws:iam::123456789012:role/nobody"])
    assert isinstance(read.endpoints, Known)
    assert [one.service for one in read.endpoints.value] == [
        "execute-api",
        "sts",
        "ssm",
        "sagemaker.api",
        "logs",
        "s3",
    ]
    assert [one.id for one in read.endpoints.value if not one.private_dns] == ["vpce-local"]
    assert read.studio_domains == Known(value=())
    assert read.api_log_role == Known(value=f"arn:aws:iam::{read.account_id}:role/api-gateway-logs")
    assert read.concurrency == Known(value=Concurrency(limit=1000, unreserved=1000))
    assert read.warm_pool_quotas == Known(value={})
    assert read.stack_status == Known(value="CREATE_COMPLETE")
    assert read.log_groups == Known(value=())
    assert read.missing_principals == Known(value=("arn:aws:iam::123456789012:role/nobody",))


def test_log_groups_of_a_stack_of_that_name_are_found(
    twin: BareTwin, account: AccountAround, reader: AccountReader
) -> None:
    logs = twin.client("logs")
    for name in ("/aws/lambda/queue-api", "/aws/lambda/queue-api-2", "/aws/apigateway/queue"):
        logs.create_log_group(logGroupName=name)
    read = reader.read(stack="queue", principals=())
    assert isinstance(read.log_groups, Known)
    assert sorted(read.log_groups.value) == ["/aws/apigateway/queue", "/aws/lambda/queue-api"]


def test_every_part_can_be_changed_and_is_read_back(account: AccountAround, reader: AccountReader) -> None:
    account.set(
        {
            "vpcs": [{"id": "vpc-9", "dns_support": False, "dns_hostnames": True, "has_way_out": True}],
            "endpoints": [],
            "studio_domains": [
                {"id": "d-1", "name": "ds", "network_mode": "PublicInternetOnly", "vpc": "vpc-9"}
            ],
            "api_log_role": None,
            "concurrency": {"limit": 10, "unreserved": 7},
            "warm_pool_quotas": {"ml.g5.xlarge": 3},
            "stacks": [],
        }
    )
    read = reader.read(stack="trainmaster", principals=())
    assert isinstance(read.vpcs, Known)
    (vpc,) = read.vpcs.value
    assert (vpc.id, vpc.dns_support, vpc.dns_hostnames, vpc.has_way_out) == ("vpc-9", False, True, True)
    assert read.endpoints == Known(value=())
    domain = StudioDomain(id="d-1", name="ds", network_mode="PublicInternetOnly", vpc="vpc-9")
    assert read.studio_domains == Known(value=(domain,))
    assert (read.api_log_role, read.stack_status) == (Known(value=None), Known(value=None))
    assert read.concurrency == Known(value=Concurrency(limit=10, unreserved=7))
    assert read.warm_pool_quotas == Known(value={"ml.g5.xlarge": 3})


def test_a_refused_question_hides_only_its_own_answer(
    twin: BareTwin, account: AccountAround, reader: AccountReader
) -> None:
    twin.faults.set("GetAccountSettings", "AccessDeniedException", 2)
    read = reader.read(stack="trainmaster", principals=())
    assert isinstance(read.concurrency, Unknown)
    assert "GetAccountSettings was answered AccessDeniedException" in read.concurrency.why
    assert isinstance(read.vpcs, Known)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"vpc": []}, "vpc"),
        ({"vpcs": [{"id": "vpc-1"}]}, "vpcs"),
        ({"concurrency": 10}, "concurrency"),
        ({"warm_pool_quotas": {"ml.g5.xlarge": "many"}}, "warm_pool_quotas"),
    ],
)
def test_a_part_that_is_not_right_is_refused_and_changes_nothing(
    account: AccountAround, values: dict[str, Any], named: str
) -> None:
    before = account.document
    with pytest.raises(AwsError, match=f"^{named}|{named}:"):
        account.set(values)
    assert account.document is before
