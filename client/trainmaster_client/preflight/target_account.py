"""An AWS account as a deployment meets it: plain data that the checks read."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vpc:
    id: str
    dns_support: bool
    """Whether Amazon's resolver answers inside the VPC."""
    dns_hostnames: bool
    """An endpoint with private DNS needs it; ours does not."""
    has_way_out: bool
    """A route table of the VPC leads 0.0.0.0/0 somewhere: a NAT, internet or transit gateway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    id: str
    service: str
    """The last part of the service's name: ``execute-api``, ``sagemaker.api``."""
    vpc: str
    state: str
    """State that EC2 reports, in lower case: ``available``, ``pending`` ..."""
    private_dns: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioDomain:
    id: str
    name: str
    network_mode: str
    """``PublicInternetOnly`` or ``VpcOnly``."""
    vpc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Concurrency:
    """Executions of Lambda functions at once in this region."""

    limit: int
    unreserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[T]):
    """An answer of AWS."""

    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """AWS gave no answer, because the caller lacks a right or the service was not reached."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Every part is asked for on its own, so that one missing right hides one part only."""

    account_id: str
    region: str
    partition: str = "aws"
    vpcs: Known[tuple[Vpc, ...]] | Unknown
    endpoints: Known[tuple[Endpoint, ...]] | Unknown
    studio_domains: Known[tuple[StudioDomain, ...]] | Unknown
    api_log_role: Known[str | None] | Unknown
    """The role under which API Gateway writes access logs in this region; None: there is none."""
    concurrency: Known[Concurrency] | Unknown
    warm_pool_quotas: Known[dict[str, int]] | Unknown
    """Instances of a type that SageMaker may keep warm, where that is more than 0."""
    stack_status: Known[str | None] | Unknown
    """Status of a stack of the wanted name, as CloudFormation says it; None: there is none."""
    log_groups: Known[tuple[str, ...]] | Unknown
    """Log groups that a stack of the wanted name makes and that exist already."""
    missing_principals: Known[tuple[str, ...]] | Unknown
    """Roles and users that the parameters name and IAM does not know."""
