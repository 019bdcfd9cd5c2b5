"""Runs ``trainmaster account-check``: the means, the cost, the examination, the report."""

import ipaddress
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import typer
from botocore.exceptions import BotoCoreError

from trainmaster_client.account_check.examination import FACTS, Asked, Examination, judge, unmet_needs
from trainmaster_client.account_check.facts import Fact, Need, Verdict, Word
from trainmaster_client.account_check.measured import measured, most_usd
from trainmaster_client.account_check.service_calls import MissingRightError, RefusedCallError, ServiceCalls
from trainmaster_client.account_check.trial_jobs import Pace
from trainmaster_client.account_check.trial_requests import INSTANCE_TYPE, ON_CPU, Means, image_in
from trainmaster_client.cli.account_options import Lent
from trainmaster_client.cli.connection import aws_session
from trainmaster_client.cli.exit_codes import ExitCode
from trainmaster_client.cli.screen import print_lines, say
from trainmaster_client.errors import CredentialsError, InvalidArgumentError
from trainmaster_client.http.answers import printable
from trainmaster_client.report import Check, Report

_AT_THE_TWIN = Pace(look=0.2, settle=1.0, jobs=300.0, events=10.0, burst=3.0)
_MINUTES, _STARVE_MINUTES = 15, 30
_ID_WIDTH = 19
_SHOWN = 160
"""Characters of what AWS said, on the screen; the report has it whole."""


def check_account(lent: Lent, *, yes: bool, file: Path) -> int:
    """Run the check and return the exit code."""
    session = aws_session()
    role, bucket = _needed(lent)
    calls = ServiceCalls(session=session, notes=[])
    caller, endpoint = _caller(calls)
    options = Asked(gpu=lent.gpu, starve=lent.starve, is_loopback=_is_loopback(endpoint), plan=lent.plan)
    region = str(session.region_name)
    image = _image(lent, region)
    if not options.is_loopback:
        _agree(options, caller["Account"], region, yes=yes)
    run = f"{datetime.now(UTC):%m%d%H%M%S}{secrets.token_hex(2)}"
    account = {"caller": caller["Arn"], "id": caller["Account"], "region": region, "endpoint": endpoint}
    means = {"instance_type": INSTANCE_TYPE, "image": image, "run": run}
    report = Report("account-check")
    report.facts = {"account": account, "asked": asdict(options) | means, "calls": calls.notes}
    examination = Examination(
        calls=calls,
        means=Means(run=run, region=region, role=role, bucket=bucket, image=image),
        options=options,
        account=caller["Account"],
        pace=_AT_THE_TWIN if options.is_loopback else Pace(),
        records=report.facts,
        say=lambda text: print_lines([f"      {printable(text)}"]),
    )
    try:
        interrupted = _examine(examination)
    except Exception:  # what was paid for is kept
        report.write(file)
        raise
    unmet = unmet_needs(options, has_quota=examination.has_quota)
    _conclude(report, unmet, file)
    return ExitCode.INTERRUPTED if interrupted else 0 if report.ok else 1


def _needed(lent: Lent) -> tuple[str, str]:
    """Return role and bucket. Raises InvalidArgumentError if one is missing or wrong."""
    if lent.role is None or ":role/" not in lent.role:
        what = "--role is missing." if lent.role is None else f"--role {lent.role} is not the ARN of a role."
        raise InvalidArgumentError(
            what,
            hint="Give the ARN of a role that SageMaker may assume and that may write to the bucket "
            "(or set TRAINMASTER_ROLE); a role of your training jobs will do.",
        )
    if lent.bucket is None or "/" in lent.bucket:
        what = "--bucket is missing." if lent.bucket is None else f"--bucket {lent.bucket} is not a name."
        raise InvalidArgumentError(
            what,
            hint="Give the name of an S3 bucket in this region (or set TRAINMASTER_BUCKET); "
            "everything is written below trainmaster-check/ and removed.",
        )
    if lent.starve and lent.gpu is None:
        raise InvalidArgumentError(
            "--starve needs an accelerated type.", hint="Name one that is hard to get: --gpu ml.p4d.24xlarge."
        )
    if lent.plan is not None and ":training-plan/" not in lent.plan:
        raise InvalidArgumentError(
            f"--plan {lent.plan} is not the ARN of a training plan.",
            hint="aws sagemaker list-training-plans shows yours.",
        )
    return lent.role, lent.bucket


def _image(lent: Lent, region: str) -> str:
    """Raises InvalidArgumentError."""
    image = lent.image or image_in(region)
    if image is None:
        raise InvalidArgumentError(
            f"There is no image of AWS for {region} in this command.",
            hint="Give one with a shell, from ECR in this region: --image.",
        )
    return image


def _caller(calls: ServiceCalls) -> tuple[dict[str, Any], str]:
    """Return the caller's identity and the endpoint of SageMaker. Raises CredentialsError."""
    try:
        caller = calls.get("sts", "GetCallerIdentity")
        endpoint = str(calls.client("sagemaker").meta.endpoint_url)
    except (BotoCoreError, ValueError, MissingRightError, RefusedCallError) as error:
        raise CredentialsError(f"{error}.") from error
    return dict(caller), endpoint


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _agree(options: Asked, account: str, region: str, *, yes: bool) -> None:
    """Say what the check costs, and ask. Raises InvalidArgumentError if there is no terminal to ask on."""
    cost = most_usd(options.gpu, starve=options.starve)
    minutes = _MINUTES + (_STARVE_MINUTES if options.starve else 0)
    price = f"at most {cost} USD (prices of us-east-1)" if cost is not None else f"what {options.gpu} costs"
    jobs = len(ON_CPU) + (options.gpu is not None) + options.starve + (options.plan is not None)
    say(
        f"account-check starts up to {jobs} training jobs of one instance ({INSTANCE_TYPE}"
        f"{f', {options.gpu}' if options.gpu else ''}) in account {account}, {region}: "
        f"{price}, {minutes} minutes. It makes a queue and a rule of its own, and removes everything."
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            "This costs money, and there is no terminal to ask on.", hint="Agree with --yes."
        )
    if not typer.confirm("Go on?", err=True):
        say("Nothing was started.")
        raise typer.Exit(ExitCode.REFUSED)


def _examine(examination: Examination) -> bool:
    """Run the examination; return whether it was interrupted. What it made is removed either way."""
    try:
        with _ended_by_sigterm():
            examination.run()
    except KeyboardInterrupt:
        say("interrupted; what was seen until then is in the report")
        return True
    return False


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that everything is removed."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _conclude(report: Report, unmet: set[Need], file: Path) -> None:
    verdicts = {fact.id: judge(fact, report.facts, unmet) for fact in FACTS}
    report.facts["measured"] = measured(report.facts)
    report.facts["assumptions"] = {
        fact.id: {
            "group": fact.group,
            "question": fact.question,
            "assumes": fact.assumes,
            "where": fact.where,
        }
        for fact in FACTS
    }
    for fact in FACTS:
        verdict = verdicts[fact.id]
        report.checks.append(_check(fact, verdict))
        print_lines(verdict_lines(fact, verdict))
    counts = {word: sum(verdict.word is word for verdict in verdicts.values()) for word in Word}
    summary = ", ".join(f"{count} {word}" for word, count in counts.items())
    try:
        report.write(file)
    except OSError as error:
        print_lines([f"account-check: {summary}, without a report"])
        raise InvalidArgumentError(f"{file}: {error.strerror}.", hint="Name another with --json.") from error
    print_lines([f"account-check: {'ok' if report.ok else 'NOT ok'} ({summary}), report in {file}"])


def _check(fact: Fact, verdict: Verdict) -> Check:
    return Check(
        id=fact.id,
        ok=verdict.ok,
        expected=fact.assumes,
        actual=None if verdict.ok is None else verdict.said,
        skipped=verdict.said if verdict.ok is None else None,
    )


def verdict_lines(fact: Fact, verdict: Verdict) -> Iterator[str]:
    text = printable(verdict.said)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    yield f"{verdict.word:<7}  {fact.id:<{_ID_WIDTH}}  {shown}"
    if verdict.word is Word.DIFFERS:
        yield f"         assumed: {fact.assumes}"
        yield f"         used in: {', '.join(fact.where)}"
