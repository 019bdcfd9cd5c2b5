"""One job for each learning rate: python sweep.py request.json 0.1 0.01 0.001."""

import json
import sys
from pathlib import Path

import trainmaster_client

request = json.loads(Path(sys.argv[1]).read_text())
for number, rate in enumerate(sys.argv[2:]):
    changed = {"TrainingJobName": f"{request['TrainingJobName']}-{number}", "HyperParameters": {"lr": rate}}
    print(trainmaster_client.submit({**request, **changed}))
