"""Where trainmaster's API is: the argument, else the environment, else the SSM parameter of the stack."""

import os
from collections.abc import Mapping

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import ApiNotConfiguredError

API_URL_VARIABLE = "TRAINMASTER_API_URL"
API_URL_PARAMETER = "/trainmaster/api-url"

_SSM_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
"""Seconds. Off the network the answer is an error within seconds, not minutes."""


def find_api_url(
    api_url: str | None, boto_session: boto3.Session, env: Mapping[str, str] = os.environ
) -> str:
    """Raises ApiNotConfiguredError, which names all three places."""
    return api_url or env.get(API_URL_VARIABLE) or _from_parameter(boto_session)


def _from_parameter(boto_session: boto3.Session) -> str:
    try:
        client = boto_session.client("ssm", config=_SSM_CONFIG)
        return client.get_parameter(Name=API_URL_PARAMETER)["Parameter"]["Value"]
    except ClientError as error:
        raise _not_configured(error.response["Error"]["Code"]) from error
    except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
        raise _not_configured(str(error)) from error


def _not_configured(why: str) -> ApiNotConfiguredError:
    return ApiNotConfiguredError(variable=API_URL_VARIABLE, parameter=API_URL_PARAMETER, why=why)
