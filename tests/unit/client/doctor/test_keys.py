"""What doctor says of keys of the customer and of prices of another region; AWS answers from a table."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster_client.doctor import keys, stack
from trainmaster_client.doctor.findings import Finding, Seen
from trainmaster_client.http.answers import Answer

KEY = "arn:aws:kms:eu-west-1:111122223333:key/volumes"
OTHER = "arn:aws:kms:eu-west-1:111122223333:key/others"
ROLE = "arn:aws:iam::111122223333:role/train"
RULES = {"rules": {"kms_keys": {"allow": [KEY]}}}
DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "Operation")


@dataclass(slots=True)
class Account:
    """Clients whose operations are answered from a table; an exception is raised."""

    answers: dict[str, Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, operation: str) -> Any:
        def call(**parameters: Any) -> Any:
            self.asked.append((operation, parameters))
            answer = self.answers.get(operation, DENIED)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class SeenThrough(Seen):
    """With one account in place of AWS."""

    account: Account

    def client(self, service: str) -> Any:
        assert service in {"cloudformation", "iam", "s3"}
        return self.account


def seen(policy: dict[str, Any] | None, answers: dict[str, Any] | None = None, **known: Any) -> SeenThrough:
    found = SeenThrough(
        env={},
        now=lambda: datetime(2026, 11, 22, tzinfo=UTC),
        api_url="https://a1b2c3-vpce-1.execute-api.eu-west-1.amazonaws.com/prod",
        policy=None if policy is None else {"policy": policy},
        **{"region": "eu-west-1", **known},
    )
    found.account = Account(answers or {})
    return found


def deployed(**parameters: str) -> dict[str, Any]:
    shown = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
    return {
        "describe_stack_resources": {"StackResources": [{"StackName": "trainmaster"}]},
        "describe_stacks": {"Stacks": [{"Parameters": shown}]},
    }


def simulated(word: str) -> dict[str, Any]:
    return {"simulate_principal_policy": {"EvaluationResults": [{"EvalDecision": word}]}}


def outcome(finding: Finding) -> tuple[str, str | None]:
    return finding.word, None if finding.trouble is None else finding.trouble.value


WARNED = ("warn", "volume-keys")


@pytest.mark.parametrize(
    ("policy", "answers", "expected"),
    [
        pytest.param(RULES, deployed(TrainingKmsKeyArns=""), WARNED, id="nobody may"),
        pytest.param(RULES, deployed(TrainingKmsKeyArns=OTHER), WARNED, id="the stack may use another one"),
        pytest.param(
            RULES, deployed(TrainingKmsKeyArns=f"{OTHER},{KEY}"), ("ok", None), id="the stack may use it"
        ),
        pytest.param({}, deployed(TrainingKmsKeyArns=""), ("ok", None), id="no rule names a key"),
        pytest.param(
            RULES | {"teams": [{"name": "a", "roles": [ROLE]}]},
            deployed(TrainingKmsKeyArns="") | simulated("allowed"),
            ("ok", None),
            id="the roles may",
        ),
        pytest.param(
            RULES | {"teams": [{"name": "a", "roles": [ROLE]}]},
            deployed(TrainingKmsKeyArns="") | simulated("implicitDeny"),
            WARNED,
            id="the roles may not either",
        ),
        pytest.param(
            {"teams": [{"name": "a", "rules": {"kms_keys": {"allow": [KEY]}}}]},
            deployed(TrainingKmsKeyArns=""),
            WARNED,
            id="a rule of a team",
        ),
        pytest.param(RULES, {}, ("skip", None), id="CloudFormation does not say"),
        pytest.param(None, {}, ("skip", None), id="not an admin"),
    ],
)
def test_N19_keys_that_jobs_may_name_and_nobody_may_use_are_worth_a_warning(
    policy: dict[str, Any] | None, answers: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(keys.volume_keys(seen(policy, answers))) == expected


def test_the_stack_is_found_by_the_id_of_its_api() -> None:
    looked = seen(RULES, deployed(TrainingKmsKeyArns=KEY))
    keys.volume_keys(looked)
    assert looked.account.asked == [
        ("describe_stack_resources", {"PhysicalResourceId": "a1b2c3"}),
        ("describe_stacks", {"StackName": "trainmaster"}),
    ]


def encrypted(algorithm: str, key: str | None = None) -> dict[str, Any]:
    default = {"SSEAlgorithm": algorithm} | ({"KMSMasterKeyID": key} if key else {})
    rules = [{"ApplyServerSideEncryptionByDefault": default}]
    return {"get_bucket_encryption": {"ServerSideEncryptionConfiguration": {"Rules": rules}}}


BUCKET = {"CheckpointBuckets": "arn:aws:s3:::one", "CheckpointKmsKeyArns": OTHER}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(
            encrypted("aws:kms", KEY), ("warn", "checkpoint-keys"), id="another key than the stack's"
        ),
        pytest.param(encrypted("aws:kms:dsse", "volumes"), ("warn", "checkpoint-keys"), id="by its id"),
        pytest.param(encrypted("aws:kms", OTHER), ("ok", None), id="a key that the stack may use"),
        pytest.param(encrypted("aws:kms"), ("ok", None), id="AWS's own key"),
        pytest.param(encrypted("AES256"), ("ok", None), id="no KMS key"),
        pytest.param({}, ("skip", None), id="S3 does not say"),
    ],
)
def test_a_bucket_whose_key_the_stack_may_not_use_is_worth_a_warning(
    answers: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    assert outcome(keys.checkpoint_keys(seen({}, deployed(**BUCKET) | answers))) == expected


def test_without_buckets_there_is_nothing_to_compare() -> None:
    assert outcome(keys.checkpoint_keys(seen({}, deployed(CheckpointBuckets="")))) == ("skip", None)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        pytest.param(simulated("allowed"), ("ok", None), id="all six"),
        pytest.param(simulated("implicitDeny"), ("warn", "table-key"), id="one is missing"),
        pytest.param({}, ("skip", None), id="IAM does not say"),
    ],
)
def test_whether_the_caller_could_deploy_the_table_s_key(
    answers: dict[str, Any], expected: tuple[str, str | None]
) -> None:
    looked = seen({}, answers, caller_arn="arn:aws:iam::111122223333:user/ann")
    assert outcome(keys.table_key(looked)) == expected
    ((_, question),) = looked.account.asked
    assert question["ResourceArns"] == ["arn:aws:kms:eu-west-1:111122223333:key/*"]
    assert {"kms:CreateGrant", "kms:DescribeKey", "kms:ReEncryptTo"} < set(question["ActionNames"])


POOLS = b'{"pools": [{"name": "p", "capacity": {"ml.g5.xlarge": 1}}]}'


@pytest.mark.parametrize(
    ("region", "policy", "word"),
    [
        ("eu-west-1", {}, "warn"),
        ("us-east-1", {}, "ok"),
        ("eu-west-1", {"prices": {"ml.g5.xlarge": 1.6}}, "ok"),
        ("eu-west-1", None, "skip"),
    ],
)
def test_prices_of_another_region_are_worth_a_warning(
    region: str, policy: dict[str, Any] | None, word: str
) -> None:
    answer = Answer(status=200, body=POOLS, headers={})
    assert stack.prices(seen(policy, region=region, answer=answer)).word == word
