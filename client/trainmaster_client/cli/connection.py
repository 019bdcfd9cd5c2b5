"""The API client of a command: AWS configuration and the API's place as the environment gives them."""

import boto3
from botocore.exceptions import BotoCoreError

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import CredentialsError
from trainmaster_client.location import find_api_url


def connect() -> ApiClient:
    try:
        session = boto3.Session()
    except BotoCoreError as error:  # AWS_PROFILE names a profile that does not exist
        raise CredentialsError(f"{error}.") from error
    return ApiClient(find_api_url(None, session), session)
