"""``python -m tests.scanners [--json P] [--bills D]``: what scanners find, and why each finding stays open.

checkov and cloudsplaining read template.yaml as CloudFormation sees it; pip-licenses the packages of .venv;
hadolint and the schemas of Kubernetes judge docs/examples/kubernetes; cyclonedx-py writes the bills of
materials of what is locked; that of the fonts lies beside them.
They live in .venv-scan.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from trainmaster_client.report import Report

from tests.scanners.findings import (
    Finding,
    Reason,
    judge,
    locked_in,
    of_checkov,
    of_examples,
    of_hadolint,
    of_licences,
    of_rights,
)
from tests.template.stack import ROOT, of_type, resources

BIN = ROOT / ".venv-scan" / "bin"
_REASONS = Path(__file__).with_name("reasons.yaml")
_LOCKS = {"environment": ROOT / "requirements.lock", "layer": ROOT / "layers/trainmaster/requirements.txt"}
"""What everything is tested with, and what runs in Lambda."""
_EXAMPLES = ROOT / "docs/examples/kubernetes"
_FONTS = ROOT / "client/trainmaster_client/dashboard/web/fonts/fonts.cdx.json"
"""Bill of the fonts in the wheel, which no package manager knows of; a unit test compares it with them."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scanners", description=__doc__)
    parser.add_argument("--json", type=Path, help="where to write the report; nowhere without it")
    parser.add_argument("--bills", type=Path, help="folder for the bills of materials, CycloneDX; likewise")
    arguments = parser.parse_args(argv)
    written = yaml.safe_load(_REASONS.read_text(encoding="utf-8"))
    reasons = [Reason(**one | {"on": tuple(one["on"])}) for one in written["reasons"]]
    report = Report("scanners", argv=("python", "-m", "tests.scanners", *argv))
    with TemporaryDirectory() as folder:
        found = [*_checkov(Path(folder)), *_rights(), *_licences(written["licences"]), *_examples()]
        bills = arguments.bills or Path(folder)
        components = {name: _components(lock, bills / f"{name}.cdx.json") for name, lock in _LOCKS.items()}
        shutil.copy(_FONTS, bills / _FONTS.name)
    verdict = judge(found, reasons)
    for finding, reason in verdict.explained:
        print(f"open  {finding}\n      because {reason.because}")
    report.facts["open"] = [str(one) for one, _ in verdict.explained]
    report.facts["components"] = components
    report.check("no-finding-without-a-reason", expected=[], actual=[str(one) for one in verdict.unexplained])
    report.check("no-reason-without-a-finding", expected=[], actual=[str(one) for one in verdict.idle])
    for name, lock in _LOCKS.items():
        locked = set(locked_in(lock.read_text(encoding="utf-8")))
        report.check(f"bill-of-{name}-lacks", expected=[], actual=sorted(locked ^ set(components[name])))
    with TemporaryDirectory() as folder:
        return report.finish(arguments.json or Path(folder) / "scanners.json")


def _checkov(folder: Path) -> Iterator[Finding]:
    template = folder / "template.json"
    template.write_text(json.dumps({"Resources": resources()}), encoding="utf-8")
    wanted = ("--framework", "cloudformation", "--output", "json", "--skip-download", "--quiet")
    ran = _run("checkov", "--file", str(template), *wanted, ends=(0, 1))
    yield from of_checkov(json.loads(ran))


def _rights() -> Iterator[Finding]:
    policies = {role: _policy_of(body) for role, body in of_type(resources(), "AWS::IAM::Role").items()}
    program = Path(__file__).with_name("rights_program.py")
    yield from of_rights(json.loads(_run("python", str(program), stdin=json.dumps(policies))))


def _policy_of(role: dict[str, Any]) -> dict[str, Any]:
    """Its own policies as one; those that AWS manages are AWS's."""
    documents = [one["PolicyDocument"] for one in role.get("Policies", [])]
    statements = [one for document in documents for one in document["Statement"]]
    return {"Version": "2012-10-17", "Statement": statements}


def _licences(allowed: list[str]) -> Iterator[Finding]:
    ran = _run("pip-licenses", "--python", str(ROOT / ".venv/bin/python"), "--format=json")
    yield from of_licences(json.loads(ran), allowed)


def _examples() -> Iterator[Finding]:
    dockerfile = str((_EXAMPLES / "Dockerfile").relative_to(ROOT))
    yield from of_hadolint(json.loads(_run("hadolint", "--format", "json", dockerfile, ends=(0, 1))))
    files = sorted([*_EXAMPLES.rglob("*.yaml"), *_EXAMPLES.rglob("*.tf")])
    program = Path(__file__).with_name("examples_program.py")
    names = [str(file.relative_to(ROOT)) for file in files]
    yield from of_examples(json.loads(_run("python", str(program), *names)))


def _components(lock: Path, bill: Path) -> list[str]:
    bill.parent.mkdir(parents=True, exist_ok=True)
    _run("cyclonedx-py", "requirements", str(lock), "-o", str(bill))
    found = json.loads(bill.read_text(encoding="utf-8"))["components"]
    return sorted(f"{one['name']}=={one['version']}" for one in found)


def _run(program: str, *arguments: str, stdin: str | None = None, ends: tuple[int, ...] = (0,)) -> str:
    ran = subprocess.run(
        [BIN / program, *arguments], input=stdin, capture_output=True, text=True, check=False, cwd=ROOT
    )
    if ran.returncode not in ends:
        sys.exit(f"{program} ended with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
