"""Checks of what the account allows and has: log role, concurrency, warm pools, the stack itself."""

from collections.abc import Iterator, Mapping

from trainmaster_client.preflight import commands
from trainmaster_client.preflight.preflight_findings import Finding, Level
from trainmaster_client.preflight.target_account import Account, Concurrency, Unknown

KEPT_UNRESERVED = 100
"""Executions that cannot be reserved. Source: Lambda Developer Guide, "Configuring reserved concurrency"."""
COMFORTABLE = 50
"""Executions at once below which the stack's own functions get in each other's way at a busy minute."""
USUAL_LIMIT = 1000
LOG_ROLE = "CreateApiGatewayLogRole"
RESERVATIONS = ("ApiReservedConcurrency", "ScheduleReservedConcurrency")
DEAD_STACKS = frozenset({"ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"})


def log_role(account: Account, parameters: Mapping[str, str]) -> Iterator[Finding]:
    """Look for the one role of an account and region that access logs need; without it a deployment fails."""
    if isinstance(account.api_log_role, Unknown):
        yield Finding(id="log-role", level=Level.SKIP, text=account.api_log_role.why)
        return
    role, given = account.api_log_role.value, parameters.get(LOG_ROLE)
    right = "false" if role else "true"
    if given == "true" and role:
        text = f"{LOG_ROLE}=true would replace the log role {role} for all APIs of the region: leave it out"
        yield Finding(id="log-role", level=Level.FAIL, text=text)
    elif given == "false" and not role:
        text = (
            f"API Gateway has no log role in this region, so the deployment would fail: give {LOG_ROLE}=true"
        )
        yield Finding(id="log-role", level=Level.FAIL, text=text)
    else:
        text = f"API Gateway logs under {role}" if role else f"API Gateway has no log role: {LOG_ROLE}=true"
        yield Finding(id="log-role", level=Level.OK, text=text, parameters={LOG_ROLE: right})


def concurrency(account: Account, parameters: Mapping[str, str]) -> Iterator[Finding]:
    """Compare Lambda's limit with what the stack needs and what the parameters would reserve."""
    if isinstance(account.concurrency, Unknown):
        yield Finding(id="concurrency", level=Level.SKIP, text=account.concurrency.why)
        return
    now = account.concurrency.value
    fits, wanted = max(now.unreserved - KEPT_UNRESERVED, 0), _reserved(parameters)
    if wanted > fits:
        yield Finding(
            id="concurrency",
            level=Level.FAIL,
            text=(
                f"{' and '.join(RESERVATIONS)} reserve {wanted} executions, of which {fits} fit:"
                f" of the {now.limit} at once that Lambda allows {now.unreserved} are unreserved,"
                f" and {KEPT_UNRESERVED} must stay so"
            ),
            commands=(commands.raise_concurrency(USUAL_LIMIT),),
        )
    elif now.limit < COMFORTABLE:
        yield Finding(
            id="concurrency",
            level=Level.WARN,
            text=f"Lambda runs only {now.limit} executions at once in this account: ask for {USUAL_LIMIT}",
            commands=(commands.raise_concurrency(USUAL_LIMIT),),
        )
    else:
        yield Finding(id="concurrency", level=Level.OK, text=_fits(now, fits))


def _fits(now: Concurrency, fits: int) -> str:
    return f"{now.limit} executions at once, of which up to {fits} could be reserved"


def _reserved(parameters: Mapping[str, str]) -> int:
    values = (parameters.get(name, "0") for name in RESERVATIONS)
    return sum(int(value) for value in values if value.isdigit())


def warm_pools(account: Account) -> Iterator[Finding]:
    """Warn that warm pools are billed where the account allows them, since the default policy keeps them."""
    if isinstance(account.warm_pool_quotas, Unknown):
        yield Finding(id="warm-pools", level=Level.SKIP, text=account.warm_pool_quotas.why)
        return
    allowed = account.warm_pool_quotas.value
    if not allowed:
        text = "the account may keep no instances warm (the default): starts are cold, nothing idle is billed"
        yield Finding(id="warm-pools", level=Level.OK, text=text)
        return
    types = ", ".join(f"{name}={count}" for name, count in sorted(allowed.items()))
    yield Finding(
        id="warm-pools",
        level=Level.WARN,
        text=(
            f"the account may keep {types} warm, and kept instances are billed like running ones. The default"
            " policy keeps them for 10 minutes after a job; warm_pool: {keep_alive: 0s} keeps none"
        ),
    )


def stack(account: Account, name: str) -> Iterator[Finding]:
    """Tell a first deployment, an upgrade and the remains of a failed one apart."""
    if isinstance(account.stack_status, Unknown):
        yield Finding(id="stack", level=Level.SKIP, text=account.stack_status.why)
        return
    status = account.stack_status.value
    if status is None:
        yield _first_deployment(account, name)
    elif status in DEAD_STACKS:
        yield Finding(
            id="stack",
            level=Level.FAIL,
            text=f"the stack {name} is {status}: it must be deleted before the next try",
            commands=(commands.delete_stack(name),),
        )
    else:
        yield Finding(id="stack", level=Level.OK, text=f"the stack {name} is {status}: an upgrade")


def _first_deployment(account: Account, name: str) -> Finding:
    """Log groups outlive a stack, and CloudFormation makes none that is there."""
    left = () if isinstance(account.log_groups, Unknown) else account.log_groups.value
    if left:
        text = f"an earlier stack {name} left {len(left)} log groups, and a new one would fail to make them"
        deletions = tuple(commands.delete_log_group(group) for group in left)
        return Finding(id="stack", level=Level.FAIL, text=text, commands=deletions)
    return Finding(id="stack", level=Level.OK, text=f"there is no stack {name} yet: a first deployment")


def principals(account: Account) -> Iterator[Finding]:
    """Check that roles and users exist: API Gateway refuses a resource policy that names missing ones."""
    if isinstance(account.missing_principals, Unknown):
        yield Finding(id="principals", level=Level.SKIP, text=account.missing_principals.why)
        return
    missing = account.missing_principals.value
    if missing:
        text = f"IAM does not know {', '.join(missing)}: the deployment would fail with an invalid principal"
        yield Finding(id="principals", level=Level.FAIL, text=text)
    else:
        yield Finding(
            id="principals", level=Level.OK, text="every role and user of CallerPrincipalArns exists"
        )
