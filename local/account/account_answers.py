"""Answers of EC2, API Gateway, Lambda, CloudFormation, Service Quotas and Studio about the account."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from local.account.document import Document, changed, healthy
from local.wire import AwsError, Principal

Answer = dict[str, Any]
SERVICES = ("ec2", "apigateway", "lambda", "cloudformation")
"""Services of which the twin answers nothing but these questions."""
STUDIO_CALLS = frozenset({"ListDomains", "DescribeDomain"})
_DNS = {
    "enableDnsSupport": ("EnableDnsSupport", "dns_support"),
    "enableDnsHostnames": ("EnableDnsHostnames", "dns_hostnames"),
}
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


class AccountAround:
    """Holds the document and answers from it; nothing here changes what the stack does."""

    def __init__(self, *, account_id: str, region: str) -> None:
        self._account_id, self._region = account_id, region
        self.document: Document = healthy(account_id)

    def set(self, values: Mapping[str, Any]) -> Document:
        """Replace parts of the document. Raises AwsError for what is not one of them."""
        self.document = changed(self.document, values)
        return self.document

    def call(self, operation: str, params: dict[str, Any], _caller: Principal) -> Answer:
        """Answer one call. Raises AwsError for a call that the twin does not know."""
        answers: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
            "DescribeVpcs": self._vpcs,
            "DescribeVpcAttribute": self._vpc_attribute,
            "DescribeVpcEndpoints": self._endpoints,
            "DescribeRouteTables": self._route_tables,
            "GetAccount": self._log_role,
            "GetAccountSettings": self._concurrency,
            "DescribeStacks": self._stacks,
            "ListDomains": self._domains,
            "DescribeDomain": self._domain,
        }
        answer = answers.get(operation)
        if answer is None:
            message = f"the twin answers no {operation}; of these services it has {', '.join(answers)}"
            raise AwsError("NotImplemented", message, status=501)
        return answer(params)

    def with_warm_pools(self, quotas: Answer) -> Answer:
        """Add the quotas of warm pools to an answer of ListServiceQuotas."""
        allowed: Mapping[str, int] = self.document["warm_pool_quotas"]
        warm_quotas = [
            {
                "QuotaName": f"{name} for training warm pool usage",
                "Value": float(count),
                "ServiceCode": "sagemaker",
            }
            for name, count in allowed.items()
        ]
        return {**quotas, "Quotas": [*(quotas.get("Quotas") or ()), *warm_quotas]}

    def _vpcs(self, _params: Mapping[str, Any]) -> Answer:
        return {"Vpcs": [{"VpcId": vpc["id"]} for vpc in self.document["vpcs"]]}

    def _vpc_attribute(self, params: Mapping[str, Any]) -> Answer:
        vpc = next((vpc for vpc in self.document["vpcs"] if vpc["id"] == params.get("VpcId")), None)
        if vpc is None:
            raise AwsError("InvalidVpcID.NotFound", f"The vpc ID '{params.get('VpcId')}' does not exist")
        key, name = _DNS[str(params["Attribute"])]
        return {"VpcId": vpc["id"], key: {"Value": vpc[name]}}

    def _endpoints(self, _params: Mapping[str, Any]) -> Answer:
        return {
            "VpcEndpoints": [
                {
                    "VpcEndpointId": endpoint["id"],
                    "VpcId": endpoint["vpc"],
                    "ServiceName": f"com.amazonaws.{self._region}.{endpoint['service']}",
                    "State": endpoint["state"],
                    "PrivateDnsEnabled": endpoint["private_dns"],
                }
                for endpoint in self.document["endpoints"]
            ]
        }

    def _route_tables(self, _params: Mapping[str, Any]) -> Answer:
        out = {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-local"}
        inside = {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}
        return {
            "RouteTables": [
                {"VpcId": vpc["id"], "Routes": [inside, *([out] if vpc["has_way_out"] else ())]}
                for vpc in self.document["vpcs"]
            ]
        }

    def _log_role(self, _params: Mapping[str, Any]) -> Answer:
        role = self.document["api_log_role"]
        return {} if role is None else {"cloudwatchRoleArn": role}

    def _concurrency(self, _params: Mapping[str, Any]) -> Answer:
        limits = self.document["concurrency"]
        return {
            "AccountLimit": {
                "ConcurrentExecutions": limits["limit"],
                "UnreservedConcurrentExecutions": limits["unreserved"],
            }
        }

    def _stacks(self, params: Mapping[str, Any]) -> Answer:
        name = params.get("StackName")
        stacks = [stack for stack in self.document["stacks"] if stack["name"] == name]
        if not stacks:
            raise AwsError("ValidationError", f"Stack with id {name} does not exist")
        return {
            "Stacks": [
                {"StackName": stack["name"], "StackStatus": stack["status"], "CreationTime": _LONG_AGO}
                for stack in stacks
            ]
        }

    def _domains(self, _params: Mapping[str, Any]) -> Answer:
        return {
            "Domains": [
                {"DomainId": domain["id"], "DomainName": domain["name"]}
                for domain in self.document["studio_domains"]
            ]
        }

    def _domain(self, params: Mapping[str, Any]) -> Answer:
        for domain in self.document["studio_domains"]:
            if domain["id"] == params.get("DomainId"):
                return {
                    "DomainId": domain["id"],
                    "DomainName": domain["name"],
                    "AppNetworkAccessType": domain["network_mode"],
                    "VpcId": domain["vpc"],
                }
        raise AwsError("ResourceNotFound", f"Domain with id {params.get('DomainId')} does not exist")
