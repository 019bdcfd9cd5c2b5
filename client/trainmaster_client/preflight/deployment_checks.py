"""All checks of an account, in the order in which they are printed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trainmaster_client.preflight import account_checks, network_checks, parameter_checks
from trainmaster_client.preflight.preflight_findings import Finding, Level
from trainmaster_client.preflight.target_account import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The deployment that is wanted, as far as it is decided."""

    stack: str = "trainmaster"
    vpcs: Sequence[str] = ()
    """Ids of the VPCs that people work in; empty means those of the endpoints."""
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def endpoints(self) -> tuple[str, ...]:
        return tuple(name for name in self.parameters.get("VpcEndpointIds", "").split(",") if name)


def examine(account: Account, wanted: Wanted) -> Iterator[Finding]:
    """Hold an account against what is to be deployed into it. Reads nothing."""
    yield from account_checks.stack(account, wanted.stack)
    yield from network_checks.api_endpoint(account, vpcs=wanted.vpcs, chosen=wanted.endpoints)
    yield from network_checks.vpc_dns(account, vpcs=wanted.vpcs)
    yield from network_checks.way_to_aws(account, vpcs=wanted.vpcs)
    yield from network_checks.studio(account)
    yield from account_checks.principals(account)
    yield from account_checks.log_role(account, wanted.parameters)
    yield from account_checks.concurrency(account, wanted.parameters)
    yield from account_checks.warm_pools(account)
    yield from parameter_checks.sizes(wanted.parameters)


def decided_parameters(findings: Sequence[Finding]) -> dict[str, str]:
    """Collect the parameters whose value the account decides."""
    return {name: value for finding in findings for name, value in finding.parameters.items()}


def passes(findings: Sequence[Finding]) -> bool:
    """Tell whether a deployment can succeed: something was seen to be right, and nothing to be wrong."""
    levels = {finding.level for finding in findings}
    return Level.FAIL not in levels and bool(levels & {Level.OK, Level.WARN})
