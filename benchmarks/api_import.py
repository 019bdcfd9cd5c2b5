"""Measures what a cold start of the API function costs beyond its DynamoDB client.

CPU time (user and system) of fresh processes, both kinds in turn, the best of each: the best is what the
code needs, the rest is what else the machine was doing.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from trainmaster_client.report import Report

from benchmarks.tables import at_most

ROOT = Path(__file__).resolve().parents[1]
RUNS = 15
MAX_RATIO = 1.3
BASE = "import boto3; boto3.client('dynamodb')"
FUNCTION = "import functions.api.app"
MODELS = """
import json, sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import functions.api.app
from trainmaster.bootstrap import wiring
assert wiring().api is not None
print(json.dumps(sorted({path for path in opened if "/botocore/data/" in path})))
"""
"""Program that lists which of botocore's data a process reads until it is ready to answer."""
SETTINGS = {
    "TRAINMASTER_TABLE": "t",
    "TRAINMASTER_DOORBELL_URL": "https://sqs/q",
    "TRAINMASTER_STACK": "s",
    "TRAINMASTER_ACCOUNT_ID": "111122223333",
    "TRAINMASTER_ADMIN_PRINCIPAL_ARNS": "",
    "TRAINMASTER_RETENTION_DAYS": "1",
    "TRAINMASTER_ALARM_TOPIC_ARN": "",
    "TRAINMASTER_MAIL_TOPIC_ARN": "",
    "TRAINMASTER_WIDGET_SHOWS_NAMES": "false",
}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.api_import", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "api_import.json", metavar="PATH")
    arguments = parser.parse_args(argv)
    report = Report("api_import")
    seconds = measure(RUNS)
    base, function = min(seconds[BASE]), min(seconds[FUNCTION])
    ratio = round(function / base, 3)
    report.facts["cpu_seconds"] = seconds
    at_most(report, "ratio", ratio, MAX_RATIO)
    models = data_read()
    report.facts["botocore_data"] = models
    of_sagemaker = [path for path in models if "/data/sagemaker" in path]
    report.check("sagemaker-model-not-loaded", expected=[], actual=of_sagemaker)
    read = sorted({path.rpartition("/botocore/data/")[2].partition("/")[0] for path in models})
    report.check("models-read", expected="dynamodb among them", actual=read, ok="dynamodb" in read)
    print(f"{base * 1000:6.0f} ms CPU  {BASE}")
    print(f"{function * 1000:6.0f} ms CPU  {FUNCTION}")
    return report.finish(arguments.json)


def measure(runs: int) -> dict[str, list[float]]:
    """Measure CPU seconds of each run, by its code; a first run, unmeasured, caches the byte code."""
    env = _environment()
    seconds: dict[str, list[float]] = {BASE: [], FUNCTION: []}
    for run in range(runs + 1):
        for code, measured in seconds.items():
            spent = cpu_seconds(code, env)
            if run:
                measured.append(round(spent, 4))
    return seconds


def cpu_seconds(code: str, env: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def data_read() -> list[str]:
    env = _environment() | SETTINGS
    ran = subprocess.run(
        [sys.executable, "-c", MODELS], env=env, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [str(path) for path in json.loads(ran.stdout)]


def _environment() -> dict[str, str]:
    paths = os.pathsep.join(str(path) for path in (ROOT, ROOT / "layers" / "trainmaster"))
    aws = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}
    return {**os.environ, **aws, "PYTHONPATH": paths}


if __name__ == "__main__":
    sys.exit(main())
