"""The looks in their order, each with what has to be well before it makes sense."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainmaster_client.doctor import (
    account,
    caller,
    keys,
    limits,
    local_gateways,
    plans,
    reachability,
    stack,
    watching,
)
from trainmaster_client.doctor.findings import Finding, Seen, blocked
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.errors.troubles import Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    id: str
    expected: str
    look: Callable[[Seen], Finding]
    needs: tuple[str, ...] = ()


# A new look is one line here, behind what it needs; its trouble goes to errors/troubles.py and, as a row, to
# docs/troubleshooting.md.
STEPS: tuple[Step, ...] = (
    Step(
        id="configuration", expected="an AWS configuration that can be read", look=reachability.configuration
    ),
    Step(id="api-url", expected="a URL of the API", look=reachability.api_url, needs=("configuration",)),
    Step(id="url-form", expected="https://<host>/<stage>", look=reachability.url_form, needs=("api-url",)),
    Step(id="region", expected="a region to sign for", look=reachability.region, needs=("url-form",)),
    Step(id="host", expected="a private address", look=reachability.host, needs=("url-form",)),
    Step(id="connection", expected="an HTTP answer", look=reachability.connection, needs=("region", "host")),
    Step(id="gateway", expected="a refusal of API Gateway", look=reachability.gateway, needs=("connection",)),
    Step(
        id="clock", expected="within 5 minutes of the API's", look=reachability.clock, needs=("connection",)
    ),
    Step(id="credentials", expected="AWS credentials", look=caller.credentials, needs=("region",)),
    Step(id="identity", expected="an IAM identity", look=caller.identity, needs=("credentials", "clock")),
    Step(id="access", expected="an answer of the API", look=caller.access, needs=("gateway", "identity")),
    Step(id="team", expected="a team, or an admin", look=caller.team, needs=("access",)),
    Step(id="submitting", expected="the API answers a dry run", look=caller.submitting, needs=("team",)),
    Step(id="version", expected="the same version", look=stack.stack_version, needs=("access",)),
    Step(id="libraries", expected="versions that are tested", look=stack.libraries),
    Step(id="pools", expected="at least one pool", look=stack.pools, needs=("team",)),
    Step(id="paused", expected="not paused", look=stack.paused, needs=("team",)),
    Step(id="policy", expected="understood by the stack", look=stack.policy, needs=("team",)),
    Step(id="rows", expected="none set aside", look=stack.rows, needs=("team",)),
    Step(id="quotas", expected="no pool above its quota", look=stack.quotas, needs=("team",)),
    Step(id="idle-alarms", expected="GPUs are watched", look=watching.idle_alarms, needs=("team",)),
    Step(id="account-limits", expected="none was met", look=stack.account_limits, needs=("team",)),
    Step(id="start-pauses", expected="none", look=stack.start_pauses, needs=("team",)),
    Step(id="plans", expected="described, with a window to come", look=plans.described, needs=("team",)),
    Step(id="bought-plans", expected="named by a pool", look=plans.named, needs=("team",)),
    Step(id="plan-use", expected="no paid instance idle", look=plans.used, needs=("team",)),
    Step(id="limits", expected="none nearly reached", look=limits.nearly_full, needs=("team",)),
    Step(id="concurrency", expected="below the account's", look=limits.concurrency, needs=("team",)),
    Step(id="prices", expected="prices of its region", look=stack.prices, needs=("team",)),
    Step(id="logs", expected="log lines can be read", look=account.logs, needs=("identity",)),
    Step(id="parameter", expected="the same URL", look=account.parameter, needs=("identity", "api-url")),
    Step(id="training-roles", expected="SageMaker may assume", look=account.training_roles, needs=("team",)),
    Step(id="gpu-metrics", expected="roles may put them", look=watching.gpu_metrics, needs=("team",)),
    Step(id="volume-keys", expected="keys that jobs may use", look=keys.volume_keys, needs=("team",)),
    Step(id="checkpoint-keys", expected="keys to read with", look=keys.checkpoint_keys, needs=("team",)),
    Step(id="table-key", expected="what a deployment needs", look=keys.table_key, needs=("team",)),
    Step(id="direct-starts", expected="not allowed", look=account.direct_starts, needs=("identity",)),
    Step(id="local-gateway", expected="the one that is named answers", look=local_gateways.local_gateway),
    Step(id="mail", expected="confirmed subscriptions", look=watching.mail, needs=("team",)),
    Step(id="operator-alarms", expected="none in ALARM", look=account.operator_alarms, needs=("team",)),
)


def examine(seen: Seen) -> Iterator[Finding]:
    """Yield the finding of each step, in their order, as soon as it is known."""
    blocking: set[str] = set()
    for step in STEPS:
        blocker = next((need for need in step.needs if need in blocking), None)
        finding = _looked(step, seen) if blocker is None else blocked(blocker)
        if finding.blocks:
            blocking.add(step.id)
        yield finding


def _looked(step: Step, seen: Seen) -> Finding:
    """Take one step; the way to the API that was there a moment ago may be gone."""
    try:
        return step.look(seen)
    except TrainmasterClientError as error:
        return Finding(ok=False, actual=str(error), trouble=error.trouble or Trouble.NO_ANSWER, blocks=True)
