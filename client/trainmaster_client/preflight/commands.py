"""The commands that preflight prints and docs/guides/deploy.md shows; a test compares the two."""

SUBNETS_AND_GROUP = "--subnet-ids subnet-0a1b2c3d subnet-0b1c2d3e --security-group-ids sg-0a1b2c3d"
"""Stand-ins: which subnets and which security group is the reader's choice."""


def make_api_endpoint(vpc: str, *, region: str) -> str:
    """Make the endpoint of the private API.

    Private DNS stays off: it would lead the default name of every API of API Gateway, public ones included,
    to this endpoint, and other programs of the VPC would get a 403. The stack's own URL does not need it.
    """
    return (
        f"aws ec2 create-vpc-endpoint --vpc-id {vpc} --vpc-endpoint-type Interface "
        f"--service-name com.amazonaws.{region}.execute-api --no-private-dns-enabled {SUBNETS_AND_GROUP}"
    )


def make_endpoint(service: str, vpc: str, *, region: str) -> str:
    """Make an endpoint of another service, for a VPC without a way out."""
    if service == "s3":
        kind, where = "Gateway", "--route-table-ids rtb-0a1b2c3d"
    else:
        kind, where = "Interface", SUBNETS_AND_GROUP
    return (
        f"aws ec2 create-vpc-endpoint --vpc-id {vpc} --vpc-endpoint-type {kind} "
        f"--service-name com.amazonaws.{region}.{service} {where}"
    )


def list_api_endpoints(region: str) -> str:
    return (
        "aws ec2 describe-vpc-endpoints "
        f"--filters Name=service-name,Values=com.amazonaws.{region}.execute-api "
        "--query 'VpcEndpoints[].[VpcEndpointId,VpcId,State]' --output table"
    )


def switch_on_dns(vpc: str) -> str:
    return f"aws ec2 modify-vpc-attribute --vpc-id {vpc} --enable-dns-support"


def move_studio_into_vpc(domain: str) -> str:
    return f"aws sagemaker update-domain --domain-id {domain} --app-network-access-type VpcOnly"


def raise_concurrency(limit: int) -> str:
    """Ask for more concurrent executions; L-B99A9384 is the quota "Concurrent executions" of Lambda."""
    return (
        "aws service-quotas request-service-quota-increase --service-code lambda "
        f"--quota-code L-B99A9384 --desired-value {limit}"
    )


def delete_log_group(name: str) -> str:
    return f"aws logs delete-log-group --log-group-name {name}"


def delete_stack(name: str) -> str:
    return f"aws cloudformation delete-stack --stack-name {name}"
