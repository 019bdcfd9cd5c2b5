"""Checks of the stack's parameters against the sizes that CloudFormation and IAM allow."""

from collections.abc import Iterator, Mapping

from trainmaster_client.preflight.preflight_findings import Finding, Level

MOST_BYTES = 4096
"""A parameter's value ends there. Source: CloudFormation User Guide, "Understand CloudFormation quotas"."""
MOST_POLICY_CHARACTERS = 10_240
"""All inline policies of a role, without white space. Source: IAM User Guide, "IAM and AWS STS quotas"."""
WARN_AT = 0.8
SCHEDULE_POLICY_CHARACTERS = 3_200
"""Inline policies of ``schedule`` without any ARN of a parameter; a test expands the template."""
IN_SCHEDULE_POLICY: Mapping[str, int] = {
    "TrainingRoleArns": 1,
    "LauncherRoleArns": 1,
    "TrainingKmsKeyArns": 1,
}
"""Parameters whose ARNs stand in the inline policies of ``schedule``, and how often each ARN does."""
_QUOTES_AND_COMMA = 3
_SHORTER = {
    "CallerPrincipalArns": "give people one role that they assume, and list that",
    "TrainingRoleArns": 'write patterns such as "arn:aws:iam::111122223333:role/*-training"',
    "LauncherRoleArns": 'write patterns such as "arn:aws:iam::111122223333:role/*-launcher"',
    "TrainingKmsKeyArns": "give kms:CreateGrant to the training roles, then no key needs to be listed",
}


def sizes(parameters: Mapping[str, str]) -> Iterator[Finding]:
    """Look at each parameter's length, and at the policy that several of them are written into."""
    grown = False
    for name, value in parameters.items():
        size = len(value.encode())
        if size >= WARN_AT * MOST_BYTES:
            grown = True
            yield _sized(
                name,
                f"{name} has {size} of {MOST_BYTES} bytes",
                fails=size > MOST_BYTES,
                remedy=_SHORTER.get(name),
            )
    characters = schedule_policy_characters(parameters)
    if characters >= WARN_AT * MOST_POLICY_CHARACTERS:
        grown = True
        longest = max(IN_SCHEDULE_POLICY, key=lambda name: len(parameters.get(name, "")))
        yield _sized(
            "schedule",
            f"the inline policy of schedule has about {characters} of {MOST_POLICY_CHARACTERS} characters,"
            f" most of them from {longest}",
            fails=characters > MOST_POLICY_CHARACTERS,
            remedy=_SHORTER[longest],
        )
    if not grown:
        yield Finding(
            id="sizes",
            level=Level.OK,
            text=f"parameters and policies are below {WARN_AT:.0%} of their limits",
        )


def schedule_policy_characters(parameters: Mapping[str, str]) -> int:
    """Estimate the characters of the inline policies of ``schedule`` with these parameters."""
    total = SCHEDULE_POLICY_CHARACTERS
    for name, times in IN_SCHEDULE_POLICY.items():
        arns = [arn for arn in parameters.get(name, "").split(",") if arn]
        total += times * sum(len(arn) + _QUOTES_AND_COMMA for arn in arns)
    return total


def _sized(name: str, text: str, *, fails: bool, remedy: str | None) -> Finding:
    level = Level.FAIL if fails else Level.WARN
    return Finding(id="sizes", level=level, text=f"{text}: {remedy or f'shorten {name}'}")
