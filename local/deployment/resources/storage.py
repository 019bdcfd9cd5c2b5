"""Tables, parameters and keys."""

import json
from typing import Any

from local.deployment.resources.kinds import Kind, Made, Properties, Site, check_keys, names

_TABLE_AS_IS = names(
    "AttributeDefinitions KeySchema GlobalSecondaryIndexes BillingMode DeletionProtectionEnabled Tags"
)


def _table(site: Site, logical_id: str, properties: Properties) -> Made:
    name = properties.get("TableName", site.name(logical_id))
    request: dict[str, Any] = {key: properties[key] for key in _TABLE_AS_IS & properties.keys()}
    if encryption := properties.get("SSESpecification"):
        request["SSESpecification"] = _table_encryption(logical_id, encryption)
    dynamodb = site.client("dynamodb")
    arn = dynamodb.create_table(TableName=name, **request)["TableDescription"]["TableArn"]
    if expiry := properties.get("TimeToLiveSpecification"):
        dynamodb.update_time_to_live(TableName=name, TimeToLiveSpecification=expiry)
    if recovery := properties.get("PointInTimeRecoverySpecification"):
        dynamodb.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification=recovery)
    return Made(ref=name, attributes={"Arn": arn})


def _table_encryption(logical_id: str, encryption: Properties) -> dict[str, Any]:
    check_keys(
        f"{logical_id}.SSESpecification",
        encryption,
        required=names("SSEEnabled"),
        optional=names("SSEType KMSMasterKeyId"),
    )
    rest = {key: value for key, value in encryption.items() if key != "SSEEnabled"}
    return {"Enabled": encryption["SSEEnabled"], **rest}


def _parameter(site: Site, _: str, properties: Properties) -> Made:
    site.client("ssm").put_parameter(**properties, Overwrite=True)
    return Made(ref=properties["Name"], attributes={"Type": properties["Type"], "Value": properties["Value"]})


def _key(site: Site, _: str, properties: Properties) -> Made:
    kms = site.client("kms")
    made = kms.create_key(
        Policy=json.dumps(properties["KeyPolicy"]), Description=properties.get("Description", "")
    )["KeyMetadata"]
    if properties.get("EnableKeyRotation"):
        kms.enable_key_rotation(KeyId=made["KeyId"])
    return Made(ref=made["KeyId"], attributes={"Arn": made["Arn"], "KeyId": made["KeyId"]})


def _key_alias(site: Site, _: str, properties: Properties) -> Made:
    site.client("kms").create_alias(**properties)
    return Made(ref=properties["AliasName"])


KINDS = {
    "AWS::DynamoDB::Table": Kind(
        create=_table,
        required=names("AttributeDefinitions KeySchema BillingMode"),
        optional=_TABLE_AS_IS
        | names("TableName SSESpecification TimeToLiveSpecification PointInTimeRecoverySpecification"),
    ),
    "AWS::SSM::Parameter": Kind(
        create=_parameter, required=names("Name Type Value"), optional=names("Description Tier")
    ),
    "AWS::KMS::Key": Kind(
        create=_key, required=names("KeyPolicy"), optional=names("Description EnableKeyRotation")
    ),
    "AWS::KMS::Alias": Kind(create=_key_alias, required=names("AliasName TargetKeyId")),
}
