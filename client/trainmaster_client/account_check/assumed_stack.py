"""Assumptions of the code about what only a stack shows (groups 11 to 13 of the guide)."""

from trainmaster_client.account_check import stack_verdicts as verdicts
from trainmaster_client.account_check.facts import Fact, Look, Need, recorded

STACKED: tuple[Fact, ...] = (
    Fact(
        id="customer-key",
        group=11,
        question="Which rights does a job with a customer's KMS key need of who starts it?",
        assumes="kms:CreateGrant where the training role lacks it; else it is refused each time",
        where=("trainmaster.adapters.sagemaker",),
        look=Look.STACK,
        judge=verdicts.customer_key,
        needs=(Need.STACK,),
    ),
    Fact(
        id="private-api",
        group=12,
        question="How does the private API refuse the unsigned, the unknown and those without the right?",
        assumes="403 with an x-amzn-ErrorType, before the function runs",
        where=("trainmaster_client.http.answers",),
        look=Look.STACK,
        judge=recorded("refusals", verdicts.private_api),
        needs=(Need.STACK,),
    ),
    Fact(
        id="user-arn",
        group=12,
        question="What is userArn of the caller?",
        assumes="an IAM user's ARN, or assumed-role without the role's path, SSO's too",
        where=("trainmaster.core.submission.identity",),
        look=Look.STACK,
        judge=recorded("user_arn", verdicts.user_arn),
        needs=(Need.STACK,),
    ),
    Fact(
        id="embedded-metrics",
        group=13,
        question="Do log lines of the functions become metrics?",
        assumes="they do, within 5 minutes",
        where=("trainmaster.adapters.emf",),
        look=Look.STACK,
        judge=verdicts.embedded_metrics,
        needs=(Need.STACK,),
    ),
    Fact(
        id="operator-alarms",
        group=13,
        question="Are the operators' alarms there, and quiet?",
        assumes="all of template.yaml, none in ALARM after the four jobs",
        where=("trainmaster_client.doctor.account",),
        look=Look.STACK,
        judge=verdicts.operator_alarms,
        needs=(Need.STACK,),
    ),
    Fact(
        id="dead-letters",
        group=13,
        question="Are the dead-letter queues empty after the four jobs?",
        assumes="empty",
        where=("trainmaster.adapters.wake_ups",),
        look=Look.STACK,
        judge=verdicts.dead_letters,
        needs=(Need.STACK,),
    ),
)
