"""Six tasks of one request, two at a time: python rates.py request.json RUN."""

import json
import sys
from pathlib import Path

import trainmaster_client

request = json.loads(Path(sys.argv[1]).read_text())
rates, seeds = ["0.1", "0.01", "0.001"], ["1", "2"]
values = [{"lr": rate, "seed": seed} for rate in rates for seed in seeds]
named = {"TrainingJobName": f"sweep-{sys.argv[2]}", "HyperParameters": {"lr": "0.1", "seed": "0"}}
array = trainmaster_client.submit_array({**request, **named}, values=values, at_most=2)
array.wait()
print(array.results().to_frame().to_string())
