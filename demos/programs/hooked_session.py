"""boto3, or botocore without it: a session that is made after one ``install()`` for the process."""

import sys
import time
from typing import Any

import boto3
import botocore.session
from trainmaster_client.hook import install

from demos.programs.sight import LOOK_SECONDS, Sight, request


def client_of(library: str) -> Any:
    if library == "boto3":
        return boto3.Session().client("sagemaker")
    return botocore.session.get_session().create_client("sagemaker")


def main(library: str) -> None:
    install()
    client, wanted, sight = client_of(library), request(), Sight()
    client.create_training_job(**wanted)
    while not sight.note(client.describe_training_job(TrainingJobName=wanted["TrainingJobName"])):
        time.sleep(LOOK_SECONDS)
    version = boto3.__version__ if library == "boto3" else botocore.__version__
    sight.write(f"{library} {version}")


if __name__ == "__main__":
    main(sys.argv[1])
