"""The private API: who gets in, what is logged, and that a changed caller list is really deployed."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.template.functions import ROUTES
from tests.template.stack import PARAMETERS, of_type, without

_ANYONE = {"Effect": "Deny", "Principal": "*", "Action": "execute-api:Invoke", "Resource": "execute-api:/*"}
RESOURCE_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {**_ANYONE, "Condition": {"StringNotEquals": {"aws:SourceVpce": PARAMETERS["VpcEndpointIds"]}}},
        {**_ANYONE, "Condition": {"StringNotEquals": {"aws:PrincipalAccount": PARAMETERS["CallerAccounts"]}}},
        {**_ANYONE, "Effect": "Allow", "Principal": {"AWS": PARAMETERS["CallerPrincipalArns"]}},
    ],
}
INTEGRATION = {
    "type": "aws_proxy",
    "httpMethod": "POST",
    "uri": "arn:aws:apigateway:eu-west-1:lambda:path/2015-03-31/functions/${ApiFunction.Arn}/invocations",
}
"""No "credentials": with the caller's, everybody would need (and have) lambda:InvokeFunction."""
LOGGED = {"requestId", "time", "userArn", "vpceId", "method", "path", "status", "error", "latency"}
URL = "https://${Api}-vpce-1a.execute-api.eu-west-1.amazonaws.com/prod"


def routes(stack: Mapping[str, Any]) -> set[tuple[str, str]]:
    paths = stack["Api"]["Properties"]["Body"]["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def wrong_methods(stack: Mapping[str, Any]) -> Iterator[str]:
    """Every route asks for a signature and calls the function under API Gateway's own permission."""
    if routes(stack) != ROUTES:
        yield f"routes: {sorted(routes(stack) ^ ROUTES)}"
    for path, methods in stack["Api"]["Properties"]["Body"]["paths"].items():
        for method, one in methods.items():
            if one.get("security") != [{"AWS_IAM": []}]:
                yield f"{method} {path}: authorisation"
            if one.get("x-amazon-apigateway-integration") != INTEGRATION:
                yield f"{method} {path}: integration"


def wrong_access(stack: Mapping[str, Any]) -> Iterator[str]:
    """Private, through the listed endpoints, for the listed accounts, by the listed principals."""
    (api,) = of_type(stack, "AWS::ApiGateway::RestApi").values()
    scheme = {"type": "apiKey", "in": "header", "name": "Authorization"} | {
        "x-amazon-apigateway-authtype": "awsSigv4"
    }
    if api["Body"].get("x-amazon-apigateway-policy") != RESOURCE_POLICY:
        yield "resource policy"
    if api["Body"].get("components") != {"securitySchemes": {"AWS_IAM": scheme}}:
        yield "what AWS_IAM means"
    endpoint = {"Types": ["PRIVATE"], "VpcEndpointIds": PARAMETERS["VpcEndpointIds"]}
    if api.get("EndpointConfiguration") != endpoint or api.get("Parameters") != {
        "endpointConfigurationTypes": "PRIVATE"
    }:
        yield "endpoint"


def wrong_stage(stack: Mapping[str, Any]) -> Iterator[str]:
    """One stage, throttled, with an access log that holds no body and no header."""
    (deployment,) = of_type(stack, "AWS::ApiGateway::Deployment")
    (stage,) = of_type(stack, "AWS::ApiGateway::Stage").values()
    where = {"RestApiId": "${Api}", "StageName": "prod", "DeploymentId": f"${{{deployment}}}"}
    if {key: stage.get(key) for key in where} != where or deployment == "Api":
        yield "stage"
    (settings,) = stage.get("MethodSettings", [{}])
    if settings != {
        "HttpMethod": "*",
        "ResourcePath": "/*",
        "DataTraceEnabled": False,
        "MetricsEnabled": True,
        "ThrottlingRateLimit": 100,
        "ThrottlingBurstLimit": 200,
    }:
        yield f"method settings: {settings}"
    log = stage.get("AccessLogSetting", {})
    if log.get("DestinationArn") != "${ApiAccessLogGroup.Arn}" or json.loads(log["Format"]).keys() != LOGGED:
        yield f"access log: {log}"


def wrong_deployment(stack: Mapping[str, Any]) -> Iterator[str]:
    (deployment,) = of_type(stack, "AWS::ApiGateway::Deployment").values()
    if deployment.get("RestApiId") != "${Api}":
        yield "deployment of another API"


def wrong_log_role(stack: Mapping[str, Any]) -> Iterator[str]:
    if of_type(stack, "AWS::ApiGateway::Account") != {
        "ApiGatewayAccount": {"CloudWatchRoleArn": "${ApiGatewayLogRole.Arn}"}
    }:
        yield "API Gateway's log role"
    if stack["Api"].get("Metadata") != {"After": "${ApiGatewayAccount}"}:
        yield "the stage may come before the log role"


def wrong_address(stack: Mapping[str, Any]) -> Iterator[str]:
    """Clients find the API by one SSM parameter, whose URL needs no header and no private DNS."""
    (parameter,) = of_type(stack, "AWS::SSM::Parameter").values()
    address = {"Name": "/trainmaster/api-url", "Type": "String", "Value": URL}
    if without(parameter, "Description") != address:
        yield f"address: {parameter}"
