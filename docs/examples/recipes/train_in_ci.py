"""Trains once and ends as the job ends: python train_in_ci.py request.json NAME."""

import json
import sys
from pathlib import Path

import trainmaster_client

request = json.loads(Path(sys.argv[1]).read_text())
job = trainmaster_client.submit({**request, "TrainingJobName": sys.argv[2]})
end = job.wait()
sys.exit(None if end.state == "completed" else f"{job.name} {end.state}: {end.why}")
