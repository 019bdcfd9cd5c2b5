"""Submits a job when another has completed: python after.py JOB request.json."""

import json
import sys
from pathlib import Path

import trainmaster_client

end = trainmaster_client.job(sys.argv[1]).wait()
if end.state != "completed":
    sys.exit(f"{sys.argv[1]} {end.state}: {end.why}")
print(trainmaster_client.submit(json.loads(Path(sys.argv[2]).read_text())))
