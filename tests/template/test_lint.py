"""cfn-lint and SAM's own validation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.template.stack import ROOT, TEMPLATE

BIN = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": "us-east-1"}


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120
    )


def test_cfn_lint_has_nothing_to_say():
    linted = _run(BIN / "cfn-lint", "--regions", "us-east-1", "--", TEMPLATE)
    assert (linted.returncode, linted.stdout, linted.stderr) == (0, "", "")


@pytest.mark.long
def test_sam_validates_the_template():
    validated = _run(BIN / "sam", "validate", "--lint")
    assert validated.returncode == 0, validated.stderr
