"""boto3: a session that is made after one ``install()`` for the process."""

import time

import boto3
from trainmaster_client.hook import install

from demos.doors.programs.sight import LOOK_SECONDS, Sight, request

if __name__ == "__main__":
    install()
    client, wanted, sight = boto3.Session().client("sagemaker"), request(), Sight()
    client.create_training_job(**wanted)
    while not sight.note(client.describe_training_job(TrainingJobName=wanted["TrainingJobName"])):
        time.sleep(LOOK_SECONDS)
    sight.write(f"boto3 {boto3.__version__}")
