"""The AWS CLI through the gateway: no hook, only the variable that the gateway prints."""

import json
import subprocess
import sys
import time
from typing import Any

from demos.programs.sight import LOOK_SECONDS, Sight, request


def aws(program: str, *arguments: str) -> Any:
    command = [program, "sagemaker", *arguments, "--output", "json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main(program: str) -> None:
    wanted, sight = request(), Sight()
    aws(program, "create-training-job", "--cli-input-json", json.dumps(wanted))
    look = ("describe-training-job", "--training-job-name", wanted["TrainingJobName"])
    while not sight.note(aws(program, *look)):
        time.sleep(LOOK_SECONDS)
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)
    sight.write((version.stdout + version.stderr).split()[0])


if __name__ == "__main__":
    main(sys.argv[1])
