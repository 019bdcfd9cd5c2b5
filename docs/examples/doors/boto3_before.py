import json
import sys
import time
from pathlib import Path

import boto3

client = boto3.client("sagemaker")
request = json.loads(Path(sys.argv[1]).read_text())
client.create_training_job(**request)
while True:
    job = client.describe_training_job(TrainingJobName=request["TrainingJobName"])
    print(job["TrainingJobStatus"], job["SecondaryStatus"])
    if job["TrainingJobStatus"] in {"Completed", "Failed", "Stopped"}:
        break
    time.sleep(5)
