"""botocore: its own session, without boto3, after one ``install()`` for the process."""

import time
from typing import Any

import botocore.session
from trainmaster_client.hook import install

from demos.doors.programs.sight import LOOK_SECONDS, Sight, request

if __name__ == "__main__":
    install()
    client: Any = botocore.session.get_session().create_client("sagemaker")
    wanted, sight = request(), Sight()
    client.create_training_job(**wanted)
    while not sight.note(client.describe_training_job(TrainingJobName=wanted["TrainingJobName"])):
        time.sleep(LOOK_SECONDS)
    sight.write(f"botocore {botocore.__version__}")
