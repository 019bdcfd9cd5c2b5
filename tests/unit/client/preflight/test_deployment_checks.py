"""What preflight makes of an account: each condition is found, with the command that changes it."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster_client.preflight.deployment_checks import Wanted, decided_parameters, examine, passes
from trainmaster_client.preflight.preflight_findings import Finding, Level
from trainmaster_client.preflight.target_account import (
    Account,
    Concurrency,
    Endpoint,
    Known,
    StudioDomain,
    Unknown,
    Vpc,
)

SERVICES = ("execute-api", "sts", "ssm", "sagemaker.api", "logs", "s3")
VPC = Vpc(id="vpc-1", dns_support=True, dns_hostnames=True, has_way_out=False)
ENDPOINTS = tuple(
    Endpoint(
        id=f"vpce-{name}", service=name, vpc="vpc-1", state="available", private_dns=name != "execute-api"
    )
    for name in SERVICES
)
HEALTHY = Account(
    account_id="111122223333",
    region="us-east-1",
    vpcs=Known(value=(VPC,)),
    endpoints=Known(value=ENDPOINTS),
    studio_domains=Known(value=()),
    api_log_role=Known(value="arn:aws:iam::111122223333:role/logs"),
    concurrency=Known(value=Concurrency(limit=1000, unreserved=1000)),
    warm_pool_quotas=Known(value={}),
    stack_status=Known(value=None),
    log_groups=Known(value=()),
    missing_principals=Known(value=()),
)


def found(account: Account, check: str, **wanted: Any) -> list[Finding]:
    return [finding for finding in examine(account, Wanted(**wanted)) if finding.id == check]


def levels(account: Account, **wanted: Any) -> dict[str, Level]:
    """The worst level of each check that is not ok."""
    order = list(Level)
    worst: dict[str, Level] = {}
    for finding in examine(account, Wanted(**wanted)):
        if finding.level is not Level.OK:
            worst[finding.id] = max(worst.get(finding.id, Level.OK), finding.level, key=order.index)
    return worst


def test_a_healthy_account_passes_and_decides_two_parameters() -> None:
    findings = list(examine(HEALTHY, Wanted(vpcs=["vpc-1"])))
    assert levels(HEALTHY, vpcs=["vpc-1"]) == {}
    assert passes(findings)
    assert decided_parameters(findings) == {
        "VpcEndpointIds": "vpce-execute-api",
        "CreateApiGatewayLogRole": "false",
    }


@pytest.mark.parametrize(
    ("changed", "wanted", "expected"),
    [
        pytest.param({"endpoints": ENDPOINTS[1:]}, {}, {"endpoint": Level.FAIL}, id="no endpoint at all"),
        pytest.param(
            {"vpcs": (VPC, replace(VPC, id="vpc-2", has_way_out=True))},
            {"vpcs": ["vpc-1", "vpc-2"]},
            {"endpoint": Level.FAIL},
            id="a second VPC without an endpoint",
        ),
        pytest.param(
            {},
            {"parameters": {"VpcEndpointIds": "vpce-execute-api,vpce-gone"}},
            {"endpoint": Level.FAIL},
            id="a named endpoint that is gone",
        ),
        pytest.param(
            {"endpoints": (replace(ENDPOINTS[0], state="deleting"), *ENDPOINTS[1:])},
            {"vpcs": ["vpc-1"]},
            {"endpoint": Level.FAIL},
            id="an endpoint that is being deleted",
        ),
        pytest.param(
            {"endpoints": (replace(ENDPOINTS[0], private_dns=True), *ENDPOINTS[1:])},
            {},
            {"private-dns": Level.WARN},
            id="private DNS of the API's endpoint",
        ),
        pytest.param(
            {"vpcs": (replace(VPC, dns_support=False),)}, {}, {"vpc-dns": Level.WARN}, id="a VPC without DNS"
        ),
        pytest.param({"vpcs": (replace(VPC, dns_hostnames=False),)}, {}, {}, id="host names are not needed"),
        pytest.param(
            {"endpoints": ENDPOINTS[:3]}, {}, {"aws-services": Level.WARN}, id="endpoints that are missing"
        ),
        pytest.param(
            {"endpoints": ENDPOINTS[:3], "vpcs": (replace(VPC, has_way_out=True),)},
            {},
            {},
            id="a NAT instead",
        ),
        pytest.param(
            {
                "studio_domains": (
                    StudioDomain(id="d-1", name="ds", network_mode="PublicInternetOnly", vpc="vpc-1"),
                )
            },
            {},
            {"studio": Level.WARN},
            id="Studio outside the VPC",
        ),
        pytest.param(
            {"api_log_role": None},
            {"parameters": {"CreateApiGatewayLogRole": "false"}},
            {"log-role": Level.FAIL},
            id="no log role, and none is to be made",
        ),
        pytest.param(
            {},
            {"parameters": {"CreateApiGatewayLogRole": "true"}},
            {"log-role": Level.FAIL},
            id="a log role that would be replaced",
        ),
        pytest.param(
            {"concurrency": Concurrency(limit=10, unreserved=10)},
            {},
            {"concurrency": Level.WARN},
            id="a new account",
        ),
        pytest.param(
            {"concurrency": Concurrency(limit=1000, unreserved=140)},
            {"parameters": {"ApiReservedConcurrency": "30", "ScheduleReservedConcurrency": "20"}},
            {"concurrency": Level.FAIL},
            id="more is reserved than fits",
        ),
        pytest.param(
            {"warm_pool_quotas": {"ml.g5.xlarge": 4}},
            {},
            {"warm-pools": Level.WARN},
            id="warm pools are billed",
        ),
        pytest.param(
            {"log_groups": ("/aws/lambda/trainmaster-api",)},
            {},
            {"stack": Level.FAIL},
            id="log groups left behind",
        ),
        pytest.param(
            {"log_groups": ("/aws/lambda/trainmaster-api",), "stack_status": "UPDATE_COMPLETE"},
            {},
            {},
            id="log groups of the stack itself",
        ),
        pytest.param(
            {"stack_status": "ROLLBACK_COMPLETE"}, {}, {"stack": Level.FAIL}, id="a failed first try"
        ),
        pytest.param(
            {"missing_principals": ("arn:aws:iam::111122223333:role/x",)},
            {},
            {"principals": Level.FAIL},
            id="a caller that does not exist",
        ),
    ],
)
def test_each_condition_is_found_and_nothing_else(
    changed: dict[str, Any], wanted: dict[str, Any], expected: dict[str, Level]
) -> None:
    known: dict[str, Any] = {name: Known(value=value) for name, value in changed.items()}
    account = replace(HEALTHY, **known)
    assert levels(account, **wanted) == expected
    assert passes(list(examine(account, Wanted(**wanted)))) is (Level.FAIL not in expected.values())


def test_without_a_log_role_the_parameter_that_makes_one_is_decided() -> None:
    account = replace(HEALTHY, api_log_role=Known(value=None))
    assert decided_parameters(found(account, "log-role")) == {"CreateApiGatewayLogRole": "true"}


def test_the_endpoint_is_made_without_private_dns() -> None:
    account = replace(HEALTHY, endpoints=Known(value=()))
    (finding,) = found(account, "endpoint", vpcs=["vpc-1"])
    assert "--no-private-dns-enabled" in finding.commands[0]
    assert "vpc-1" in finding.commands[0]


def test_what_may_not_be_asked_is_skipped_and_hides_nothing_else() -> None:
    account = replace(
        HEALTHY, endpoints=Unknown(why="not known: DescribeVpcEndpoints was answered AccessDenied")
    )
    assert levels(account) == {"endpoint": Level.SKIP, "aws-services": Level.SKIP}
    parts = (
        "vpcs",
        "endpoints",
        "studio_domains",
        "api_log_role",
        "concurrency",
        "warm_pool_quotas",
        "log_groups",
    )
    unknown: dict[str, Any] = dict.fromkeys((*parts, "stack_status"), Unknown(why="no"))
    nothing = replace(HEALTHY, **unknown)
    assert Level.FAIL not in levels(nothing).values()


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        pytest.param(10, {}, id="few"),
        pytest.param(60, {"sizes": Level.WARN}, id="80 %"),
        pytest.param(75, {"sizes": Level.FAIL}, id="too many"),
    ],
)
def test_sizes_of_a_parameter(count: int, expected: dict[str, Level]) -> None:
    arns = ",".join(
        f"arn:aws:iam::111122223333:role/aws-reserved/scientist-{number:03}" for number in range(count)
    )
    assert levels(HEALTHY, parameters={"CallerPrincipalArns": arns}) == expected


def test_parameters_that_fit_alone_may_be_too_much_for_one_policy() -> None:
    def arns(kind: str) -> str:
        return ",".join(
            f"arn:aws:iam::111122223333:role/teams/{kind}-of-team-{number:02}" for number in range(54)
        )

    parameters = {"TrainingRoleArns": arns("training"), "LauncherRoleArns": arns("launcher")}
    key = "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    parameters["TrainingKmsKeyArns"] = ",".join([key] * 10)
    (finding,) = found(HEALTHY, "sizes", parameters=parameters)
    assert finding.level is Level.FAIL
    assert "10240 characters" in finding.text
    assert "role/*-" in finding.text
