"""Checks of the network: the endpoint of the private API, its VPC, and what else is reached from there."""

from collections.abc import Iterable, Iterator, Mapping

from trainmaster_client.preflight import commands
from trainmaster_client.preflight.preflight_findings import Finding, Level
from trainmaster_client.preflight.target_account import Account, Endpoint, Unknown, Vpc

API_SERVICE = "execute-api"
NEEDED: Mapping[str, str] = {
    "sts": "doctor, and SDKs that assume a role",
    "ssm": "finding the API by its parameter, unless TRAINMASTER_API_URL is set",
    "sagemaker.api": "DescribeTrainingJob of running attempts",
    "logs": "the log lines that fit() shows",
    "s3": "uploading source code",
}
"""Uses of AWS, beside the API, of programs in a VPC without a way out, by the endpoint's service name."""


def api_endpoint(account: Account, *, vpcs: Iterable[str], chosen: Iterable[str]) -> Iterator[Finding]:
    """Look for the endpoints through which the private API is reached.

    Args:
        account: The answers of AWS.
        vpcs: The VPCs that people work in; none: every VPC that has such an endpoint will do.
        chosen: The stack's parameter VpcEndpointIds, if it is known.
    """
    if isinstance(account.endpoints, Unknown):
        yield Finding(id="endpoint", level=Level.SKIP, text=account.endpoints.why)
        return
    there = {endpoint.id: endpoint for endpoint in account.endpoints.value if endpoint.service == API_SERVICE}
    named, wanted = list(chosen), list(vpcs)
    gone = [name for name in named if name not in there]
    if gone:
        yield _unknown_endpoints(gone, account)
    usable = [endpoint for endpoint in there.values() if _is_usable(endpoint, named=named, vpcs=wanted)]
    for vpc in wanted or ([] if there else ["vpc-0a1b2c3d"]):
        if not any(endpoint.vpc == vpc for endpoint in usable):
            yield _no_endpoint(vpc, account)
    if usable and not gone:
        ids = ",".join(named or [endpoint.id for endpoint in usable])
        yield Finding(
            id="endpoint", level=Level.OK, text=f"VpcEndpointIds={ids}", parameters={"VpcEndpointIds": ids}
        )
    for endpoint in usable:
        if endpoint.private_dns:
            yield _private_dns(endpoint)


def _is_usable(endpoint: Endpoint, *, named: list[str], vpcs: list[str]) -> bool:
    is_chosen = endpoint.id in named if named else not vpcs or endpoint.vpc in vpcs
    return is_chosen and endpoint.state in {"available", "pending"}


def _unknown_endpoints(names: list[str], account: Account) -> Finding:
    return Finding(
        id="endpoint",
        level=Level.FAIL,
        text=f"VpcEndpointIds has {', '.join(names)}: no endpoint for {API_SERVICE} in {account.region}",
        commands=(commands.list_api_endpoints(account.region),),
    )


def _no_endpoint(vpc: str, account: Account) -> Finding:
    return Finding(
        id="endpoint",
        level=Level.FAIL,
        text=f"{vpc} has no interface endpoint for {API_SERVICE}: nobody there could reach the API",
        commands=(commands.make_api_endpoint(vpc, region=account.region),),
    )


def _private_dns(endpoint: Endpoint) -> Finding:
    return Finding(
        id="private-dns",
        level=Level.WARN,
        text=(
            f"{endpoint.id} has private DNS: in {endpoint.vpc} the default name of every API of API Gateway"
            " leads to it, so calls of public APIs get a 403. The queue works either way; leave it unless"
            " programs suffer"
        ),
    )


def vpc_dns(account: Account, *, vpcs: Iterable[str]) -> Iterator[Finding]:
    """Look at the DNS flags of the VPCs that people work in."""
    if isinstance(account.vpcs, Unknown):
        yield Finding(id="vpc-dns", level=Level.SKIP, text=account.vpcs.why)
        return
    wanted = set(vpcs)
    for vpc in account.vpcs.value:
        if wanted and vpc.id not in wanted:
            continue
        yield _dns_of(vpc)
    for name in sorted(wanted - {vpc.id for vpc in account.vpcs.value}):
        yield Finding(id="vpc-dns", level=Level.FAIL, text=f"there is no VPC {name} in {account.region}")


def _dns_of(vpc: Vpc) -> Finding:
    if not vpc.dns_support:
        text = f"{vpc.id} has enableDnsSupport off: the API's name resolves only by a resolver of yours"
        command = commands.switch_on_dns(vpc.id)
        return Finding(id="vpc-dns", level=Level.WARN, text=text, commands=(command,))
    if not vpc.dns_hostnames:
        text = (
            f"{vpc.id} has no DNS host names: an endpoint with private DNS cannot be made there,"
            " and the queue's needs none"
        )
        return Finding(id="vpc-dns", level=Level.OK, text=text)
    return Finding(id="vpc-dns", level=Level.OK, text=f"{vpc.id} resolves names")


def way_to_aws(account: Account, *, vpcs: Iterable[str]) -> Iterator[Finding]:
    """Name the endpoints that a VPC without a way out lacks."""
    if isinstance(account.vpcs, Unknown) or isinstance(account.endpoints, Unknown):
        missing = account.vpcs if isinstance(account.vpcs, Unknown) else account.endpoints
        assert isinstance(missing, Unknown)
        yield Finding(id="aws-services", level=Level.SKIP, text=missing.why)
        return
    wanted = set(vpcs) or {
        endpoint.vpc for endpoint in account.endpoints.value if endpoint.service == API_SERVICE
    }
    for vpc in account.vpcs.value:
        if vpc.id not in wanted:
            continue
        there = {endpoint.service for endpoint in account.endpoints.value if endpoint.vpc == vpc.id}
        lacking = [service for service in NEEDED if service not in there]
        if vpc.has_way_out or not lacking:
            how = "a default route" if vpc.has_way_out else "endpoints"
            yield Finding(id="aws-services", level=Level.OK, text=f"{vpc.id} reaches them by {how}")
            continue
        needs = "; ".join(f"{service} ({NEEDED[service]})" for service in lacking)
        yield Finding(
            id="aws-services",
            level=Level.WARN,
            text=f"{vpc.id} has no default route, and no endpoint for {needs}",
            commands=tuple(
                commands.make_endpoint(service, vpc.id, region=account.region) for service in lacking
            ),
        )


def studio(account: Account) -> Iterator[Finding]:
    """Find Studio domains whose notebooks do not use the VPC, so that they cannot reach a private API."""
    if isinstance(account.studio_domains, Unknown):
        yield Finding(id="studio", level=Level.SKIP, text=account.studio_domains.why)
        return
    outside = [domain for domain in account.studio_domains.value if domain.network_mode != "VpcOnly"]
    for domain in outside:
        yield Finding(
            id="studio",
            level=Level.WARN,
            text=(
                f"Studio domain {domain.name} ({domain.id}) is {domain.network_mode}:"
                f" its notebooks bypass {domain.vpc} and cannot reach the API."
                " All its apps must be stopped for the change"
            ),
            commands=(commands.move_studio_into_vpc(domain.id),),
        )
    if not outside:
        count = len(account.studio_domains.value)
        yield Finding(id="studio", level=Level.OK, text=f"{count} Studio domains, none of them outside a VPC")
