"""Two learning rates, again where one failed: python handle.py request.json RUN."""

import json
import sys
from pathlib import Path

import trainmaster_client

request = json.loads(Path(sys.argv[1]).read_text())
named = {"TrainingJobName": f"rates-{sys.argv[2]}", "HyperParameters": {"lr": "0.1"}}
array = trainmaster_client.submit_array({**request, **named}, values={"lr": [0.1, 0.01]}, at_most=1)
if array.wait().state == "failed":
    array = array.rerun("failed")
    array.wait()
print(array.results(by="loss").to_frame().to_string())
