"""docs/examples/chat: which events the rule takes, and what it posts, whatever a job is called."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from samtranslator.yaml_helper import yaml_parse
from trainmaster.core.outbox.messages import NoticeKind

from local.deployment.events.patterns import matches
from tests.template.stack import ROOT, Resolver

TEMPLATE = ROOT / "docs/examples/chat/template.yaml"
SOURCE: dict[str, Any] = yaml_parse(TEMPLATE.read_text())
KINDS = SOURCE["Parameters"]["Kinds"]["Default"].split(",")
HOSTILE = (
    '"}], "channel": "#all',
    "<!channel> <https://evil.example|here>",
    "*bold* `code`",
    "a\\nb\n\x1b[31m",
    "<kind>",
)


def resolved(**changed: Any) -> dict[str, Any]:
    """Properties by logical id."""
    values = {
        "TrainmasterStack": "prod",
        "Chat": "slack",
        "WebhookUrl": "https://hooks.example.com/x",
        "Kinds": KINDS,
        "Teams": [""],
        **changed,
    }
    resolver = Resolver(SOURCE, values)
    return {name: resolver.resolve(one.get("Properties", {})) for name, one in SOURCE["Resources"].items()}


def event(
    kind: str = "Job Failed", *, stack: str = "prod", team: str = "vision", what: str = "x"
) -> dict[str, Any]:
    detail = {
        "version": "1",
        "id": "1",
        "at": "2026-11-23T08:00:00Z",
        "stack": stack,
        "team": team,
        "what": what,
    }
    return {"source": "trainmaster", "detail-type": kind, "detail": detail}


def taken(sent: dict[str, Any], **changed: Any) -> bool:
    return matches(resolved(**changed)["Rule"]["EventPattern"], sent)


def posted(sent: dict[str, Any], **changed: Any) -> Any:
    """As EventBridge transforms: a placeholder without quotes becomes the JSON of what the path finds."""
    (target,) = resolved(**changed)["Rule"]["Targets"]
    transformer = target["InputTransformer"]

    def found(name: str) -> str:
        value: Any = sent
        for key in transformer["InputPathsMap"][name].removeprefix("$.").split("."):
            value = value[key]
        return json.dumps(value)

    return json.loads(re.sub(r"<(\w+)>", lambda match: found(match[1]), transformer["InputTemplate"]))


def test_kinds_that_are_posted_unless_said_otherwise_are_kinds_that_there_are() -> None:
    assert set(KINDS) <= {str(kind) for kind in NoticeKind}
    assert len(KINDS) == len(set(KINDS))


def test_events_of_this_stack_and_these_kinds_are_taken_and_no_others() -> None:
    assert taken(event())
    assert taken(event(team="operators", kind="Platform Warning"))
    assert not taken(event(stack="test"))
    assert not taken(event("Job Completed"))
    assert taken(event("Job Completed"), Kinds=["Job Completed"])
    assert not taken(event() | {"source": "aws.sagemaker"})


def test_teams_are_chosen_where_some_are_named() -> None:
    assert taken(event(), Teams=["vision", "language"])
    assert not taken(event(team="speech"), Teams=["vision", "language"])


@pytest.mark.parametrize("hostile", HOSTILE)
def test_slack_gets_plain_text_whatever_a_job_is_called(hostile: str) -> None:
    message = posted(event(what=hostile, team=hostile))
    assert message.keys() == {"text", "blocks"}
    assert message["text"] == "Job Failed", "of a kind alone: Slack reads markup there"
    section, context = message["blocks"]
    assert section["text"] == {"type": "plain_text", "emoji": False, "text": hostile}
    assert [one["type"] for one in context["elements"]] == ["plain_text", "plain_text"]
    assert [one["text"] for one in context["elements"]] == ["Job Failed", hostile]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_teams_gets_a_card_of_text_runs(hostile: str) -> None:
    (attachment,) = posted(event(what=hostile), Chat="teams")["attachments"]
    blocks = attachment["content"]["body"]
    assert {block["type"] for block in blocks} == {"RichTextBlock"}, "a TextBlock would read Markdown"
    assert [run["text"] for block in blocks for run in block["inlines"]] == ["Job Failed", hostile, "vision"]


def test_what_is_not_taken_within_an_hour_is_kept_and_the_role_may_post_alone() -> None:
    found = resolved()
    (target,) = found["Rule"]["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": "${DeadLetters.Arn}"}
    (statement,) = found["DeadLettersPolicy"]["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"ArnEquals": {"aws:SourceArn": "${Rule.Arn}"}}
    (policy,) = found["Role"]["Policies"]
    assert policy["PolicyDocument"]["Statement"] == [
        {"Effect": "Allow", "Action": "events:InvokeApiDestination", "Resource": "${Channel.Arn}"}
    ]


def test_the_webhook_is_a_secret_and_https() -> None:
    url = SOURCE["Parameters"]["WebhookUrl"]
    assert url["NoEcho"] is True
    assert re.fullmatch(url["AllowedPattern"], "https://hooks.slack.com/services/T0/B0/x")
    assert not re.fullmatch(url["AllowedPattern"], "http://hooks.slack.com/services/T0/B0/x")


def test_cfn_lint_has_nothing_to_say() -> None:
    linter = str(Path(sys.executable).parent / "cfn-lint")
    command = [linter, "--regions", "us-east-1", "--", str(TEMPLATE)]
    linted = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")
