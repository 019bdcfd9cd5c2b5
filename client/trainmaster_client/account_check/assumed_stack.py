"""Assumptions of the code about what only a stack shows (groups 11 to 13 of the guide)."""

from functools import partial

from trainmaster_client.account_check import stack_verdicts as verdicts
from trainmaster_client.account_check.facts import Fact, Look, Need, recorded

_stacked = partial(Fact, look=Look.STACK, needs=(Need.STACK,))

STACKED: tuple[Fact, ...] = (
    _stacked(
        id="customer-key",
        group=11,
        question="Which rights does a job with a customer's KMS key need of who starts it?",
        assumes="kms:CreateGrant where the training role lacks it; else it is refused each time",
        where=("trainmaster.adapters.sagemaker",),
        judge=verdicts.customer_key,
    ),
    _stacked(
        id="private-api",
        group=12,
        question="How does the private API refuse the unsigned, the unknown and those without the right?",
        assumes="403 with an x-amzn-ErrorType, before the function runs",
        where=("trainmaster_client.http.answers",),
        judge=recorded("refusals", verdicts.private_api),
    ),
    _stacked(
        id="user-arn",
        group=12,
        question="What is userArn of the caller?",
        assumes="an IAM user's ARN, or assumed-role without the role's path, SSO's too",
        where=("trainmaster.core.submission.identity",),
        judge=recorded("user_arn", verdicts.user_arn),
    ),
    _stacked(
        id="embedded-metrics",
        group=13,
        question="Do log lines of the functions become metrics?",
        assumes="they do, within 5 minutes",
        where=("trainmaster.adapters.emf",),
        judge=verdicts.embedded_metrics,
    ),
    _stacked(
        id="operator-alarms",
        group=13,
        question="Are the operators' alarms there, and quiet?",
        assumes="all of template.yaml, none in ALARM after the four jobs",
        where=("trainmaster_client.doctor.account",),
        judge=verdicts.operator_alarms,
    ),
    _stacked(
        id="dead-letters",
        group=13,
        question="Are the dead-letter queues empty after the four jobs?",
        assumes="empty",
        where=("trainmaster.adapters.wake_ups",),
        judge=verdicts.dead_letters,
    ),
)
