"""Everything that can stand between a user and the queue; errors, doctor and docs share its texts."""

from dataclasses import dataclass
from enum import StrEnum


class Trouble(StrEnum):
    """Troubles in the order in which ``trainmaster doctor`` meets them."""

    NO_API_URL = "no-api-url"
    BAD_API_URL = "bad-api-url"
    PLAIN_HTTP = "plain-http"
    NO_STAGE = "no-stage"
    HOST_UNKNOWN = "host-unknown"
    PUBLIC_ADDRESS = "public-address"
    NOTHING_LISTENS = "nothing-listens"
    NO_WAY = "no-way"
    TLS = "tls"
    PROXY = "proxy"
    NO_ANSWER = "no-answer"
    NOT_THE_API = "not-the-api"
    CLOCK = "clock"
    NO_CREDENTIALS = "no-credentials"
    CREDENTIALS_UNREADABLE = "credentials-unreadable"
    NO_REGION = "no-region"
    EXPIRED_CREDENTIALS = "expired-credentials"
    UNKNOWN_KEY = "unknown-key"
    WRONG_SIGNATURE = "wrong-signature"
    WRONG_SECRET = "wrong-secret"  # noqa: S105  a name
    WRONG_REGION = "wrong-region"
    WRONG_STAGE = "wrong-stage"
    WRONG_ENDPOINT = "wrong-endpoint"
    DENIED = "denied"
    NOT_A_CALLER = "not-a-caller"
    FORBIDDEN = "forbidden"
    NO_TEAM = "no-team"
    TOO_MANY_REQUESTS = "too-many-requests"
    API_FAILED = "api-failed"
    OLD_CLIENT = "old-client"
    OLD_STACK = "old-stack"
    OLD_LIBRARY = "old-library"
    NO_POOLS = "no-pools"
    PAUSED = "paused"
    POLICY_NOT_UNDERSTOOD = "policy-not-understood"
    OUTDATED_DEFAULTS = "outdated-defaults"
    ROWS_SET_ASIDE = "rows-set-aside"
    POOL_ABOVE_QUOTA = "pool-above-quota"
    IDLE_UNWATCHED = "idle-unwatched"
    ACCOUNT_LIMIT = "account-limit"
    STARTS_PAUSED = "starts-paused"
    PLAN_NOT_DESCRIBED = "plan-not-described"
    PLAN_OVER = "plan-over"
    PLAN_NOT_NAMED = "plan-not-named"
    PLAN_IDLE = "plan-idle"
    NEAR_LIMIT = "near-limit"
    CONCURRENCY = "concurrency"
    PRICES_ELSEWHERE = "prices-elsewhere"
    LOGS_UNREADABLE = "logs-unreadable"
    PARAMETER_MISSING = "parameter-missing"
    PARAMETER_DIFFERS = "parameter-differs"
    ROLE_MISSING = "role-missing"
    ROLE_NOT_TRUSTING = "role-not-trusting"
    GPU_METRICS_MISSING = "gpu-metrics-missing"
    VOLUME_KEYS = "volume-keys"
    CHECKPOINT_KEYS = "checkpoint-keys"
    TABLE_KEY = "table-key"
    DIRECT_STARTS = "direct-starts"
    MAIL_UNCONFIRMED = "mail-unconfirmed"
    OPERATOR_ALARM = "operator-alarm"
    GATEWAY_SILENT = "gateway-silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Two sentences for people; each stands alone on a line."""

    cause: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.cause} {self.remedy}"
