"""F18, K12, K13: what is a secret, and what only looks like one."""

import base64
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.request.request import read_request
from trainmaster.core.request.request_shapes import SHAPES as SHAPES_OF_THE_SERVICE
from trainmaster.core.request.secret_detectors import SECRETS, secret_in, secret_in_text
from trainmaster.core.submission.admission import Submission, Verdict, judge

from tests.bodies import body, tags
from tests.builders import A
from tests.faults.submitting import refusal, submit
from tests.integration.world import World

AWS, HUGGING_FACE = "AKIAIOSFODNN7EXAMPLE", "hf_" + "aBcD" * 9
SAS = "https://a.blob.core.windows.net/c/f?sv=2024-11-04&se=2026-12-01&sr=b&sig=aBcDeFgHiJkLmNoPqRsTuVwXyZ%3D"
PRESIGNED = "s3://bucket/key?X-Amz-Credential=x&X-Amz-Signature=0123456789abcdef"
PRIVATE_KEY = "-----BEGIN RSA PRIVATE KEY----- MIIE"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SHAPES = {
    "access key": AWS,
    "session key": '"ASIAIOSFODNN7EXAMPLE"',
    "secret key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "PEM": PRIVATE_KEY,
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitLab": "glpat-" + "a1B2" * 5,
    "Hugging Face": HUGGING_FACE,
    "OpenAI": "sk-proj-" + "a1B2" * 6,
    "Slack": "xoxb-123456789012-abcdef",
    "Slack webhook": "https://hooks.slack.com/services/T00000000/B00000000/aaaabbbbcccc",
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "URL": "postgres://me:hunter2@db.example/train",
    "URL without a user": "redis://:hunter2@cache.example:6379/0",
    "presigned URL": PRESIGNED.replace("s3://bucket", "https://bucket.s3.amazonaws.com"),
    "shared access signature": SAS,
    "Weights & Biases": "0123456789abcdef0123456789abcdef01234567",
    "in text": "training for customer x, secret=hunter2 please",
    "in JSON": '{"lr": 0.1, "db_password": "hunter2"}',
    "an option": "python train.py --password hunter2 --epochs 3",
    "an option with =": "python train.py --db-password=hunter2",
    "wandb login": "wandb login 0123456789abcdef0123456789abcdef01234567 && python train.py",
    "a header": "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
    "a key in base64": in_base64(AWS),
    "a secret key in base64": in_base64("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "a private key in base64": in_base64(PRIVATE_KEY),
    "a token in base64 in text": f"echo {in_base64(HUGGING_FACE)} | base64 -d",
}
NAMES = (
    "WANDB_API_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "TOKEN",
    "SECRET",
    "CREDENTIALS",
    "DB_PASS",
    "AZURE_STORAGE_KEY",
    "password",
    "aws_session_token",
    "DB_PASSWORD",
    "aws_secret_access_key",
    "hub_auth_token",
    "hubToken",
    "ApiKey",
    "github_pat",
)
PLACES: dict[str, Callable[[str, str], tuple[dict[str, Any], str]]] = {
    "hyperparameters": lambda name, text: (
        {"HyperParameters": {name: text}},
        f"HyperParameters.{name}",
    ),
    "environment": lambda name, text: ({"Environment": {name: text}}, f"Environment.{name}"),
    "a tag": lambda name, text: ({"Tags": [{"Key": name, "Value": text}]}, "Tags[0].Value"),
    "an argument": lambda name, text: (
        {
            "AlgorithmSpecification": {
                "TrainingImage": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:1",
                "TrainingInputMode": "File",
                "ContainerArguments": [f"--{name}", text],
            }
        },
        "AlgorithmSpecification.ContainerArguments[1]",
    ),
}


def refused(whole: dict[str, Any]) -> list[tuple[str | None, str]]:
    error = refusal(whole)
    assert error.status == 422
    return [(one.rule, one.field) for one in error.errors]


TAG_VALUE = re.compile(SHAPES_OF_THE_SERVICE["TagValue"]["pattern"])
IN_PLACES = [
    pytest.param(place, text, id=f"{what} in {place}")
    for place in PLACES
    for what, text in SHAPES.items()
    if place != "a tag" or TAG_VALUE.fullmatch(text)
]


@pytest.mark.parametrize(("place", "text"), IN_PLACES)
def test_F18_K12_what_looks_like_a_secret_is_refused_and_not_repeated(place: str, text: str) -> None:
    changed, field = PLACES[place]("note", text)
    error = refusal(body(**changed))
    assert (error.status, [(one.rule, one.field) for one in error.errors]) == (422, [("secrets", field)])
    assert text not in f"{error} {error.detail} {error.errors}"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", NAMES)
def test_F18_K12_what_is_called_a_secret_is_one_whatever_it_looks_like(place: str, name: str) -> None:
    changed, field = PLACES[place](name, "hunter2hunter2")
    error = refusal(body(**changed))
    assert [(one.rule, one.field) for one in error.errors] == [("secrets", field)]
    assert "hunter2" not in f"{error} {error.detail} {error.errors}"


@pytest.mark.parametrize("secret", [AWS, HUGGING_FACE], ids=["AWS", "Hugging Face"])
@pytest.mark.parametrize(
    ("whole", "field"),
    [
        (lambda text: body(Tags=tags(key=text)), "Tags[0].Value"),
        (
            lambda text: body(DebugHookConfig={"S3OutputPath": "s3://b", "HookParameters": {"a": text}}),
            "DebugHookConfig.HookParameters.a",
        ),
        (
            lambda text: body(
                DebugRuleConfigurations=[
                    {"RuleConfigurationName": "r", "RuleEvaluatorImage": "i", "RuleParameters": {"a": text}}
                ]
            ),
            "DebugRuleConfigurations[0].RuleParameters.a",
        ),
        (
            lambda text: body(ProfilerConfig={"ProfilingParameters": {"a": text}}),
            "ProfilerConfig.ProfilingParameters.a",
        ),
    ],
    ids=["a tag", "a debugger hook", "a debugger rule", "the profiler"],
)
def test_F18_secrets_are_seen_wherever_free_text_stands(
    whole: Callable[[str], dict[str, Any]], field: str, secret: str
) -> None:
    assert refused(whole(secret)) == [("secrets", field)]


def test_K12_a_presigned_url_is_no_place_to_read_from() -> None:
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": PRESIGNED}}
    whole = body(InputDataConfig=[{"ChannelName": "train", "DataSource": source}])
    assert refused(whole) == [("secrets", "InputDataConfig[0].DataSource.S3DataSource.S3Uri")]


LOOK_ALIKES = [
    ("git_sha", "0123456789abcdef0123456789abcdef01234567"),
    ("model_revision", "0123456789abcdef0123456789abcdef01234567"),
    ("image_digest", "sha256:" + "0123456789abcdef" * 4),
    ("max_token_length", "512"),
    ("max_tokens", "4096"),
    ("tokens_per_batch", "1048576"),
    ("num_token", "512"),
    ("eos_token", "</s>"),
    ("padToken", "<pad>"),
    ("tokenizer", "gpt2"),
    ("tokenizer_name", "meta-llama/Llama-3.1-8B"),
    ("use_auth_token", "true"),
    ("WANDB_API_KEY", ""),
    ("WANDB_API_KEY", "arn:aws:secretsmanager:us-east-1:111122223333:secret:wandb"),
    ("password", "/prod/db/password"),
    ("wandb_api_key_name", "prod/wandb"),
    ("secret_name", "prod/wandb"),
    ("GOOGLE_APPLICATION_CREDENTIALS", "conf/credentials.json"),
    ("primary_key", "id"),
    ("label_key", "label"),
    ("first_pass", "16"),
    ("note", "s3://bucket/prefix/model.tar.gz"),
    ("note", "meta-llama/Llama-3.1-8B"),
    ("note", "sk-learn-contrib"),
    ("note", "http://10.0.0.1:8080/metrics"),
    ("note", '{"max_tokens": 4096, "pad_token": "<pad>", "token": null}'),
    ("config", in_base64(json.dumps({"lr": 0.1, "max_tokens": 4096, "pad_token": "<pad>", "layers": 32}))),
    ("note", "python train.py --eos-token <eos> --password ${DB_PASSWORD} --epochs 3"),
    ("note", in_base64('{"lr":0.0001,"warmup":200,"b":4}'[:30])),
    ("note", "fields are token: int64 and password: str"),
    ("note", "https://$USER:$PASSWORD@pypi.example/simple"),
    ("note", "git@github.com:me/repo.git"),
    ("data_dir", "/opt/ml/input/data/TrainSet2/part1/part2"),
    ("base_model_version", "0123456789abcdef0123456789abcdef01234567"),
    ("snapshot", "0123456789abcdef0123456789abcdef01234567"),
    ("continuation_token", "##"),
    ("delimiter_token", "|"),
    ("add_input_output_demarcation_key", "True"),
    ("master_key", "id"),
    ("pass", "2"),
    ("eval_pass", "2"),
    ("hub_token", "null"),
    ("HF_TOKEN_PATH", "/opt/ml/token"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/secrets/token"),
    ("kms_key", "arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
    ("sagemaker_submit_directory", '"s3://sagemaker-us-east-1-111122223333/job/source/sourcedir.tar.gz"'),
    ("SM_FRAMEWORK_PARAMS", '{"sagemaker_program": "train.py", "sagemaker_region": "us-east-1"}'),
]
"""The later ones are what SageMaker's SDK, Hugging Face's estimators and their users write."""


@pytest.mark.parametrize(("name", "value"), LOOK_ALIKES)
def test_F18_K13_what_only_looks_like_a_secret_is_taken(name: str, value: str) -> None:
    for place in ("hyperparameters", "environment", "an argument"):
        changed, _ = PLACES[place](name, value)
        assert submit(json.dumps(body(**changed))).name == "p5", place


def test_F18_a_public_key_is_no_secret_whatever_its_name() -> None:
    """Each remote function of the SDK v3 has one."""
    key = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZI\n-----END PUBLIC KEY-----\n"
    private = key.replace("PUBLIC", "PRIVATE")
    submit(json.dumps(body(Environment={"REMOTE_FUNCTION_SECRET_KEY": key, "OTHER": key})))
    environment = {"A_SECRET_KEY": key + private, "B": private, "C_SECRET_KEY": "x"}
    assert [field for _, field in refused(body(Environment=environment))] == [
        "Environment.A_SECRET_KEY",
        "Environment.B",
        "Environment.C_SECRET_KEY",
    ]


HOSTILE = (
    *("a", "-", "\\", "=", "aA1/", "key = ", "--password ", '"a": "b", ', "a.b-c."),
    *("-eyJ", "://a:b", "wandb ", "bearer ", "?sig=aaaa", "hf_aaaa", "hooks.slack.com/", "xox", "QUJD"),
    "-----BEGIN ",
)


@pytest.mark.parametrize("part", HOSTILE)
def test_K12_time_grows_with_a_text_and_not_with_its_square(part: str) -> None:
    """A body has up to 256 KiB; its square would be what the function has time for many times over."""
    short, long = (min(_seconds((part * size)[:size]) for _ in range(3)) for size in (8_192, 65_536))
    assert long < short * 8 * 3 + 0.001, f"{long / short:.0f} times for 8 times as much"


def _seconds(text: str) -> float:
    began = time.process_time()
    secret_in(text, name="note")
    return time.process_time() - began


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_K12_no_word_that_is_looked_for_first_hides_a_secret(text: str) -> None:
    assert (SECRETS.search(text) is None) == (secret_in_text(text) is None)


def test_K12_no_other_message_repeats_the_secret_either() -> None:
    """Fields that are invalid besides, and rules on the very tag."""
    tag = {"required_tags": {"tags": {"owner": {"one_of": ["ada"]}}}}
    policy = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}], "rules": tag})
    verdict = judged(policy, body(Tags=tags(owner=AWS)))
    assert {one.rule for one in verdict.violations} == {"required_tags", "secrets"}
    assert AWS not in repr(verdict)


# ---- what the policy says about them


def judged(policy: Policy, whole: dict[str, Any]) -> Verdict:
    return judge(Submission(body=whole, ask=read_request(whole), team="default", submitted_by="me"), policy)


@pytest.mark.parametrize(
    ("rule", "enforced", "audited"),
    [
        pytest.param({}, 1, 0, id="not written"),
        pytest.param({"secrets": True}, 1, 0, id="enforced"),
        pytest.param({"secrets": {"mode": "audit"}}, 0, 1, id="audited"),
        pytest.param({"secrets": {"mode": "allow"}}, 0, 0, id="allowed"),
    ],
)
def test_F18_the_rule_has_modes(rule: dict[str, Any], enforced: int, audited: int) -> None:
    policy = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}], "rules": rule})
    verdict = judged(policy, body(Environment={"HF_TOKEN": HUGGING_FACE}))
    assert (len(verdict.violations), len(verdict.audited)) == (enforced, audited)
    assert [one.mode for one in verdict.audited] == [Mode.AUDIT] * audited
    assert HUGGING_FACE not in repr(verdict)


def test_F18_a_team_cannot_loosen_the_rule() -> None:
    team = {"name": "red", "roles": "any", "rules": {"secrets": {"mode": "allow"}}}
    policy = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}], "teams": [team]})
    whole = body(Environment={"HF_TOKEN": HUGGING_FACE})
    submission = Submission(body=whole, ask=read_request(whole), team="red", submitted_by="me")
    with pytest.raises(PolicyViolationError):
        judge(submission, policy).accepted()


def test_F18_a_secret_is_neither_stored_nor_logged_nor_answered(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = world.items()
    answer = world.submit("job1", HyperParameters={"x": HUGGING_FACE}, Tags=[{"Key": "key", "Value": AWS}])
    assert answer["status"] == 422
    assert [one["field"] for one in answer["errors"]] == ["HyperParameters.x", "Tags[0].Value"]
    assert world.items() == before
    written = capsys.readouterr()
    seen = json.dumps(answer) + caplog.text + written.out + written.err
    assert HUGGING_FACE not in seen
    assert AWS not in seen


def test_F18_an_audited_secret_is_in_no_answer_and_no_record(new_world: Callable[..., World]) -> None:
    rules = {"secrets": {"mode": "audit"}}
    world = new_world({"pools": [{"name": "main", "capacity": {A: 2}}], "rules": rules})
    answer = world.submit("job1", HyperParameters={"x": HUGGING_FACE})
    assert answer["status"] == 201
    assert "HyperParameters.x" in json.dumps(answer["warnings"])
    assert HUGGING_FACE not in json.dumps(answer)
    assert HUGGING_FACE not in repr(world.items())  # the request itself is kept compressed


@pytest.mark.parametrize(
    ("mode", "status", "records"),
    [
        pytest.param("enforce", 422, 0, id="enforced"),
        pytest.param("audit", 201, 1, id="audited"),
        pytest.param("allow", 201, 0, id="allowed"),
    ],
)
def test_L13_a_token_in_environment_goes_by_the_mode_of_the_rule_and_reaches_only_sagemaker(
    new_world: Callable[..., World],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    mode: str,
    status: int,
    records: int,
) -> None:
    rules = {"secrets": {"mode": mode}}
    world = new_world({"pools": [{"name": "main", "capacity": {A: 2}}], "rules": rules})
    answer = world.submit("job1", Environment={"HF_TOKEN": HUGGING_FACE})
    world.schedule()
    record = world.api("GET", "/violations", query={"month": f"{world.now:%Y-%m}"})
    assert answer["status"] == status
    assert [one["field"] for one in answer.get("errors", ())] == ["Environment.HF_TOKEN"] * (status == 422)
    assert json.dumps(answer.get("warnings", [])).count("Environment.HF_TOKEN") == records
    assert len(record["violations"]) == records
    sent = [one.request["Environment"]["HF_TOKEN"] for one in world.sagemaker.jobs.values()]
    assert sent == [HUGGING_FACE] * (status == 201)
    written = capsys.readouterr()
    seen = [answer, record, world.api("GET", "/jobs/job1"), world.messages, caplog.text, written]
    assert HUGGING_FACE not in repr(seen)
