"""Calls the deployed API: signed, unsigned, with a wrong secret, without rights, and past the gateway."""

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import ForbiddenError

from demos.deployed.ministack import REGION, MiniStack

if TYPE_CHECKING:
    from boto3 import Session

Document = dict[str, Any]

_INVOKE = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "execute-api:Invoke", "Resource": "*"}],
}
_TIMEOUT_SECONDS = 30


def make_user(root: "Session", name: str, *, may_invoke: bool) -> "Session":
    """Make an IAM user with a key of its own."""
    iam = root.client("iam")
    iam.create_user(UserName=name)
    if may_invoke:
        iam.put_user_policy(UserName=name, PolicyName="invoke", PolicyDocument=json.dumps(_INVOKE))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name=REGION)


def gateway_url(api_url: str, ministack: MiniStack) -> str:
    """Return MiniStack's URL of this API; in a VPC the DNS of the endpoint does that step."""
    parts = urlsplit(api_url)
    api_id = parts.netloc.partition("-vpce-")[0]
    return ministack.url(f"/_aws/execute-api/{api_id}{parts.path}")


def unsigned_status(url: str) -> int:
    """Return the status of a request that nobody signed."""
    try:
        with urllib.request.urlopen(f"{url}/jobs", timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310  our own
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def refusal_of(url: str, session: "Session") -> str | None:
    """Return how the API refuses a job of a caller; None if it does not."""
    try:
        ApiClient(url, session).add_job({"TrainingJobName": "not-for-me"})
    except ForbiddenError as error:
        return str(error).partition("\n")[0]
    return None


def with_wrong_secret(session: "Session") -> "Session":
    keys = session.get_credentials()
    assert keys is not None
    return boto3.Session(keys.access_key, "not-the-secret", region_name=REGION)


def answer_without_arn(root: "Session", function: str) -> Document:
    """Return the function's answer to an event of a gateway that does not authorize with IAM."""
    event = {
        "httpMethod": "POST",
        "path": "/add-job",
        "resource": "/add-job",
        "headers": {"content-type": "application/json"},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "requestContext": {"identity": {"userArn": None}, "requestId": "deploy-check"},
        "body": json.dumps({"TrainingJobName": "nobody-asked"}),
        "isBase64Encoded": False,
    }
    done = root.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
    answer: Document = json.loads(done["Payload"].read())
    return {"function_error": done.get("FunctionError"), "status": answer.get("statusCode")}


def refusals(root: "Session", url: str, function: str) -> Document:
    """Try every caller who may not call; return how each is refused."""
    stranger = make_user(root, "stranger", may_invoke=False)
    friend = make_user(root, "friend", may_invoke=True)
    return {
        "unsigned": unsigned_status(url),
        "wrong_secret": refusal_of(url, with_wrong_secret(friend)),
        "no_right": refusal_of(url, stranger),
        "root_user": refusal_of(url, root),
        "no_user_arn": answer_without_arn(root, function),
    }
