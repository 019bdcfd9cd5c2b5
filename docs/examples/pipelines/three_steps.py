"""Three steps, queued in one go: python three_steps.py request.json RUN."""

import json
import sys
from pathlib import Path

import trainmaster_client

request = json.loads(Path(sys.argv[1]).read_text())
prepare, train, clean = (
    {**request, "TrainingJobName": f"{step}-{sys.argv[2]}"} for step in ("prepare", "train", "clean")
)
first = trainmaster_client.submit(prepare)
second = trainmaster_client.submit(train, after=first)
last = trainmaster_client.submit(clean, after=f"afterany:{second.name}")
print(first.tree())
print(last.wait().state)
