"""Reads properties that MiniStack may drop without a word; facts for the report, not checks."""

from typing import TYPE_CHECKING, Any

from demos.deploy_check.stack import Deployment

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]


def kept(session: "Session", deployment: Deployment) -> Document:
    """Return each property that template.yaml sets, as its service reports it; None if it is gone."""
    return {**_api(session, deployment), **_table(session, deployment), **_topic(session, deployment)}


def _api(session: "Session", deployment: Deployment) -> Document:
    gateway, api_id = session.client("apigateway"), deployment.name_of("Api")
    api = gateway.get_rest_api(restApiId=api_id)
    stage = gateway.get_stage(restApiId=api_id, stageName="prod")
    return {
        "api_endpoint_types": api.get("endpointConfiguration", {}).get("types"),
        "api_resource_policy": api.get("policy"),
        "api_access_log": stage.get("accessLogSettings") or None,
        "api_throttling": stage["methodSettings"]["*/*"].get("throttlingRateLimit"),
    }


def _table(session: "Session", deployment: Deployment) -> Document:
    dynamodb, name = session.client("dynamodb"), deployment.name_of("Table")
    table = dynamodb.describe_table(TableName=name)["Table"]
    backups = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    return {
        "table_time_to_live": dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"],
        "table_point_in_time_recovery": backups["PointInTimeRecoveryDescription"],
        "table_encryption": table.get("SSEDescription"),
        "table_deletion_protection": table.get("DeletionProtectionEnabled"),
    }


def _topic(session: "Session", deployment: Deployment) -> Document:
    topic = session.client("sns").get_topic_attributes(TopicArn=deployment.name_of("AlarmTopic"))
    return {"topic_key": topic["Attributes"].get("KmsMasterKeyId")}
