"""Asks AWS for what preflight looks at; nothing is written, and each question may be refused on its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.preflight.target_account import (
    Account,
    Concurrency,
    Endpoint,
    Known,
    StudioDomain,
    Unknown,
    Vpc,
)

T = TypeVar("T")

_CONFIG = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 2})
"""Seconds. Nine services are asked; where one cannot be reached the others still are, soon."""
_WARM_POOL = " for training warm pool usage"
"""End of a quota's name in Service Quotas: ``ml.g5.xlarge for training warm pool usage``."""
FUNCTIONS = ("api", "schedule", "on-training-job-event", "on-idle-alarm", "reconcile", "queue-widget")
"""Ends of the names of the stack's log groups; a test compares them with the template."""
_NO_STACK = "ValidationError"
_NO_ENTITY = "NoSuchEntity"
_EVERYWHERE = "0.0.0.0/0"


class AccountReader:
    """Reads one account and region with the credentials of one session."""

    def __init__(self, session: boto3.Session) -> None:
        self._session = session

    def read(self, *, stack: str, principals: Iterable[str]) -> Account:
        """Ask every question once.

        Raises:
            ClientError, BotoCoreError: The caller has no valid credentials, so that nothing can be asked.
        """
        identity = self._client("sts").get_caller_identity()
        return Account(
            account_id=identity["Account"],
            partition=identity["Arn"].split(":")[1],
            region=str(self._session.region_name),
            vpcs=_asked(self._vpcs),
            endpoints=_asked(self._endpoints),
            studio_domains=_asked(self._studio_domains),
            api_log_role=_asked(self._api_log_role),
            concurrency=_asked(self._concurrency),
            warm_pool_quotas=_asked(self._warm_pool_quotas),
            stack_status=_asked(lambda: self._stack_status(stack)),
            log_groups=_asked(lambda: self._log_groups(stack)),
            missing_principals=_asked(lambda: self._missing(identity["Account"], principals)),
        )

    def _client(self, service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
        return self._session.client(service, config=_CONFIG)  # type: ignore[call-overload]

    def _pages(self, service: str, operation: str, key: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
        for page in self._client(service).get_paginator(operation).paginate(**arguments):
            yield from page.get(key) or ()

    def _vpcs(self) -> tuple[Vpc, ...]:
        ec2 = self._client("ec2")
        ways_out = {
            table["VpcId"]
            for table in self._pages("ec2", "describe_route_tables", "RouteTables")
            if any(route.get("DestinationCidrBlock") == _EVERYWHERE for route in table.get("Routes") or ())
        }

        def flag(vpc: str, attribute: str, key: str) -> bool:
            return bool(ec2.describe_vpc_attribute(VpcId=vpc, Attribute=attribute)[key]["Value"])

        return tuple(
            Vpc(
                id=vpc["VpcId"],
                dns_support=flag(vpc["VpcId"], "enableDnsSupport", "EnableDnsSupport"),
                dns_hostnames=flag(vpc["VpcId"], "enableDnsHostnames", "EnableDnsHostnames"),
                has_way_out=vpc["VpcId"] in ways_out,
            )
            for vpc in self._pages("ec2", "describe_vpcs", "Vpcs")
        )

    def _endpoints(self) -> tuple[Endpoint, ...]:
        return tuple(
            Endpoint(
                id=endpoint["VpcEndpointId"],
                service=_service_of(endpoint["ServiceName"], str(self._session.region_name)),
                vpc=endpoint["VpcId"],
                state=endpoint["State"].lower(),
                private_dns=bool(endpoint.get("PrivateDnsEnabled")),
            )
            for endpoint in self._pages("ec2", "describe_vpc_endpoints", "VpcEndpoints")
        )

    def _studio_domains(self) -> tuple[StudioDomain, ...]:
        sagemaker = self._client("sagemaker")
        names = [domain["DomainId"] for domain in self._pages("sagemaker", "list_domains", "Domains")]
        described = (sagemaker.describe_domain(DomainId=name) for name in names)
        return tuple(
            StudioDomain(
                id=domain["DomainId"],
                name=domain["DomainName"],
                network_mode=domain.get("AppNetworkAccessType") or "PublicInternetOnly",
                vpc=domain.get("VpcId") or "its VPC",
            )
            for domain in described
        )

    def _api_log_role(self) -> str | None:
        return self._client("apigateway").get_account().get("cloudwatchRoleArn") or None

    def _concurrency(self) -> Concurrency:
        limits = self._client("lambda").get_account_settings()["AccountLimit"]
        return Concurrency(
            limit=limits["ConcurrentExecutions"], unreserved=limits["UnreservedConcurrentExecutions"]
        )

    def _warm_pool_quotas(self) -> dict[str, int]:
        quotas = self._pages("service-quotas", "list_service_quotas", "Quotas", ServiceCode="sagemaker")
        return {
            quota["QuotaName"].removesuffix(_WARM_POOL): int(quota["Value"])
            for quota in quotas
            if quota["QuotaName"].endswith(_WARM_POOL) and quota["Value"] > 0
        }

    def _stack_status(self, name: str) -> str | None:
        try:
            (stack,) = self._client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        except ClientError as error:
            if (
                error.response["Error"]["Code"] == _NO_STACK
            ):  # what CloudFormation answers for a name it lacks
                return None
            raise
        return str(stack["StackStatus"])

    def _log_groups(self, stack: str) -> tuple[str, ...]:
        wanted = {f"/aws/apigateway/{stack}", *(f"/aws/lambda/{stack}-{name}" for name in FUNCTIONS)}
        prefixes = ("/aws/apigateway/", "/aws/lambda/")
        names = (
            group["logGroupName"]
            for prefix in prefixes
            for group in self._pages(
                "logs", "describe_log_groups", "logGroups", logGroupNamePrefix=f"{prefix}{stack}"
            )
        )
        return tuple(name for name in names if name in wanted)

    def _missing(self, account_id: str, arns: Iterable[str]) -> tuple[str, ...]:
        """Return the principals that do not exist; only those of this account can be looked up."""
        iam = self._client("iam")
        return tuple(arn for arn in arns if f":{account_id}:" in arn and not _exists(iam, arn))


def _exists(iam: Any, arn: str) -> bool:  # noqa: ANN401  boto3 makes its clients at run time
    kind, _, name = arn.rpartition(":")[2].partition("/")
    look = {
        "role": lambda last: iam.get_role(RoleName=last),
        "user": lambda last: iam.get_user(UserName=last),
    }
    if kind not in look:
        return True
    try:
        look[kind](name.rpartition("/")[2])
    except ClientError as error:
        if error.response["Error"]["Code"] == _NO_ENTITY:
            return False
        raise
    return True


def _service_of(name: str, region: str) -> str:
    """Cut ``com.amazonaws.us-east-1.sagemaker.api`` to ``sagemaker.api``; other names stay whole."""
    return name.partition(f".{region}.")[2] or name


def _asked(question: Callable[[], T]) -> Known[T] | Unknown:
    try:
        return Known(value=question())
    except ClientError as error:
        return Unknown(
            why=f"not known: {error.operation_name} was answered {error.response['Error']['Code']}"
        )
    except BotoCoreError as error:
        return Unknown(why=f"not known: {' '.join(str(error).split())}")
