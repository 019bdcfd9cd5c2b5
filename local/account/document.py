"""The account around the stack as one document, which a control call replaces part by part."""

from collections.abc import Mapping
from typing import Any

from local.wire import AwsError

Document = dict[str, Any]

_FIELDS: Mapping[str, Mapping[str, type]] = {
    "vpcs": {"id": str, "dns_support": bool, "dns_hostnames": bool, "has_way_out": bool},
    "endpoints": {"id": str, "service": str, "vpc": str, "state": str, "private_dns": bool},
    "studio_domains": {"id": str, "name": str, "network_mode": str, "vpc": str},
    "stacks": {"name": str, "status": str},
}
"""Parts that are lists, with the fields of an entry; all of them are needed."""


def healthy(account_id: str) -> Document:
    """Describe an account in which a deployment goes through: the one that the twin stands for."""
    services = ("execute-api", "sts", "ssm", "sagemaker.api", "logs", "s3")
    ids = ("vpce-local", *(f"vpce-{name.replace('.', '-')}" for name in services[1:]))
    return {
        "vpcs": [{"id": "vpc-local", "dns_support": True, "dns_hostnames": True, "has_way_out": False}],
        "endpoints": [
            {
                "id": id_,
                "service": name,
                "vpc": "vpc-local",
                "state": "available",
                "private_dns": id_ != "vpce-local",
            }
            for id_, name in zip(ids, services, strict=True)
        ],
        "studio_domains": [],
        "api_log_role": f"arn:aws:iam::{account_id}:role/api-gateway-logs",
        "concurrency": {"limit": 1000, "unreserved": 1000},
        "warm_pool_quotas": {},
        "stacks": [{"name": "trainmaster", "status": "CREATE_COMPLETE"}],
    }


def changed(document: Document, values: Mapping[str, Any]) -> Document:
    """Replace parts whole. Raises AwsError (400) naming a part or a field that is not right."""
    for name, value in values.items():
        if name not in document:
            raise AwsError("ValidationException", f"{name}: not one of {', '.join(document)}")
        _check(name, value)
    return document | dict(values)


def _check(name: str, value: object) -> None:
    match name:
        case "api_log_role":
            is_right = value is None or isinstance(value, str)
        case "concurrency":
            is_right = isinstance(value, dict) and _has(value, {"limit": int, "unreserved": int})
        case "warm_pool_quotas":
            is_right = isinstance(value, dict) and all(isinstance(count, int) for count in value.values())
        case _:
            is_right = isinstance(value, list) and all(
                isinstance(entry, dict) and _has(entry, _FIELDS[name]) for entry in value
            )
    if not is_right:
        raise AwsError("ValidationException", f"{name}: must look like the one that GET /account shows")


def _has(entry: Mapping[str, Any], fields: Mapping[str, type]) -> bool:
    return entry.keys() == fields.keys() and all(
        isinstance(entry[name], kind) for name, kind in fields.items()
    )
