"""What the notebooks train: says what it was given, step by step, and leaves a model."""

import json
import os
import sys
from pathlib import Path

given = sys.argv[1:]
print("arguments", json.dumps(given), flush=True)
print("channels", json.dumps(sorted(json.loads(os.environ.get("SM_CHANNELS", "[]")))), flush=True)
print("said", os.environ.get("SAID", "nothing"), flush=True)
for step in range(1, 4):
    print(f"step={step} loss={1 / step:.3f}", flush=True)
if "--fail" in given:
    sys.exit(3)
(Path(os.environ["SM_MODEL_DIR"]) / "weights").write_text("w")
print("trained", flush=True)
