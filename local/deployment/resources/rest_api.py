"""The REST API: its routes and its resource policy, out of the OpenAPI body that SAM writes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from local.deployment.deployment_errors import TemplateError
from local.deployment.resources.kinds import Kind, Made, Properties, Site, check_keys, names
from local.deployment.wiring import Api, Stage

_FUNCTION_URI = re.compile(r"arn:aws:apigateway:[a-z0-9-]+:lambda:path/2015-03-31/functions/(.+)/invocations")
_BODY_KEYS = names("info openapi paths components x-amazon-apigateway-policy")
_METHOD_KEYS = names("x-amazon-apigateway-integration security responses")
_SHORT_RESOURCE = "execute-api:/"


def _rest_api(site: Site, logical_id: str, properties: Properties) -> Made:
    api_id = site.short_id(logical_id)
    body = properties["Body"]
    check_keys(f"{logical_id}.Body", body, required=names("paths"), optional=_BODY_KEYS)
    policy = body.get("x-amazon-apigateway-policy")
    api_arn = site.arn("execute-api", api_id)
    site.wiring.apis[api_id] = Api(
        api_id=api_id,
        routes=dict(_routes(logical_id, body["paths"])),
        policy=None if policy is None else _full_resources(policy, api_arn),
    )
    return Made(ref=api_id, attributes={"RestApiId": api_id})


def _routes(logical_id: str, paths: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], str]]:
    for path, methods in paths.items():
        for method, definition in methods.items():
            where = f"{logical_id}.{method} {path}"
            check_keys(where, definition, required=_METHOD_KEYS, optional=frozenset())
            if definition["security"] != [{"AWS_IAM": []}]:
                raise TemplateError(where, "the twin serves only methods with AWS_IAM")
            yield (method.upper(), path), _integrated_function(where, definition)


def _integrated_function(where: str, definition: Mapping[str, Any]) -> str:
    integration = definition["x-amazon-apigateway-integration"]
    check_keys(where, integration, required=names("httpMethod type uri"), optional=frozenset())
    match = _FUNCTION_URI.fullmatch(integration["uri"])
    if integration["type"] != "aws_proxy" or match is None:
        raise TemplateError(where, "the twin serves only proxy integrations of functions")
    return match[1]


def _full_resources(policy: Mapping[str, Any], api_arn: str) -> dict[str, Any]:
    """Write out the short form ``execute-api:/stage/METHOD/path`` as API Gateway does on saving."""
    statements = [
        statement
        | {"Resource": [_full_resource(resource, api_arn) for resource in _as_list(statement["Resource"])]}
        for statement in policy["Statement"]
    ]
    return {**policy, "Statement": statements}


def _full_resource(resource: str, api_arn: str) -> str:
    if not resource.startswith(_SHORT_RESOURCE):
        return resource
    return f"{api_arn}/{resource.removeprefix(_SHORT_RESOURCE)}"


def _as_list(value: Any) -> list[Any]:  # noqa: ANN401  a JSON value
    return value if isinstance(value, list) else [value]


def _deployment(site: Site, logical_id: str, _: Properties) -> Made:
    return Made(ref=site.short_id(logical_id))


def _stage(site: Site, _: str, properties: Properties) -> Made:
    name = properties["StageName"]
    site.wiring.stages.append(Stage(api_id=properties["RestApiId"], name=name))
    return Made(ref=name)


def _account(site: Site, logical_id: str, _: Properties) -> Made:
    return Made(ref=site.name(logical_id))


KINDS = {
    "AWS::ApiGateway::RestApi": Kind(
        create=_rest_api,
        required=names("Body"),
        optional=names("Name Description Parameters EndpointConfiguration"),
    ),
    "AWS::ApiGateway::Deployment": Kind(
        create=_deployment, required=names("RestApiId"), optional=names("Description StageName")
    ),
    "AWS::ApiGateway::Stage": Kind(
        create=_stage,
        required=names("RestApiId StageName DeploymentId"),
        # Logs, metrics and throttling of the gateway itself: the twin has none.
        optional=names("AccessLogSetting MethodSettings"),
    ),
    "AWS::ApiGateway::Account": Kind(create=_account, required=names("CloudWatchRoleArn")),
}
