"""What looks or is called like a secret: a training job shows its request to all who may describe it."""

import re
from collections.abc import Iterator

from trainmaster.core.errors import Mistake, Path
from trainmaster.core.request.strict_json import JsonValue
from trainmaster.core.request.validation.sections import Section, elements, section

SECRETS = re.compile(
    r"""(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}                      # AWS access key id
      | \A"?(?=.*[A-Z])(?=.*[a-z])(?=.*[0-9])[A-Za-z0-9/+]{40}"?\Z   # AWS secret access key
      | -----BEGIN\ (?!PUBLIC\ KEY-)[A-Z0-9\ ]+-----                # PEM
      | \bgh[opsur]_[A-Za-z0-9]{36} | \bgithub_pat_[A-Za-z0-9_]{22}
      | \bglpat-[A-Za-z0-9_-]{20}
      | \bhf_[A-Za-z0-9]{30}                                        # Hugging Face
      | \bsk-(?:[a-z0-9]{2,8}-[A-Za-z0-9_-]{20}|[A-Za-z0-9]{20})    # OpenAI, Anthropic
      | \b[rs]k_live_[A-Za-z0-9]{20}                                # Stripe
      | \bAIza[A-Za-z0-9_-]{35}                                     # Google
      | \bnpm_[A-Za-z0-9]{36}
      | \bxox[abeoprs]-[A-Za-z0-9-]{10}                             # Slack
      | \beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.              # JSON web token
      | ://[^\s/:@]{1,256}:[^\s/:@]{1,256}@                         # a URL with a password
    """,
    re.VERBOSE,
)
_NAMES = re.compile(
    r"(?:.{0,200}[_.-])?(?:password|passwd|passphrase|api_?key|secret_?key|secret_access_key|private_?key"
    r"|client_secret|access_?token|auth_?token|api_?token|hf_token|github_token)",
    re.IGNORECASE,
)
"""Of hyperparameters and variables that hold a secret, whatever it looks like."""
_NO_SECRETS = re.compile(
    r'"?(?:|true|false|none|null|0|1|(?:arn:|ssm:|/|\$\{|\{\{).{0,2048})"?'
    r"|-----BEGIN PUBLIC KEY-----[\s\S]{0,2048}",
    re.IGNORECASE,
)
"""What stands in them where there is none: nothing, a switch, where the secret is kept, or a public key.

The SDK v3 puts such a key into each job of a remote function, as REMOTE_FUNCTION_SECRET_KEY. Source:
sagemaker-core 2.27, remote_function/job.py.
"""
_NAMED = ("HyperParameters", "Environment")
_HINT = "keep secrets in AWS Secrets Manager and read them in the training code; pass the secret's name"


def secret_mistakes(body: Section) -> Iterator[Mistake]:
    """The fields are named; what stands in them is never repeated."""
    for path, value in _free_texts(body):
        if isinstance(value, str) and (SECRETS.search(value) or _is_named_so(path, value)):
            yield Mistake(path, "looks like a secret", _HINT)


def _is_named_so(path: Path, value: str) -> bool:
    """By the name of the hyperparameter or variable: a password has no shape."""
    name = path[-1]
    named = path[0] in _NAMED and isinstance(name, str) and _NAMES.fullmatch(name)
    return bool(named) and not _NO_SECRETS.fullmatch(value)


def _free_texts(body: Section) -> Iterator[tuple[Path, JsonValue]]:
    """Where people can write what they like; names, places and images have a form of their own."""
    for name in _NAMED:
        yield from _entries(body, name, ())
    for index, tag in elements(body, "Tags"):
        yield ("Tags", index, "Value"), tag.get("Value")
    for name in ("DebugRuleConfigurations", "ProfilerRuleConfigurations"):
        for index, rule in elements(body, name):
            yield from _entries(rule, "RuleParameters", (name, index))
    for parent, name in (("DebugHookConfig", "HookParameters"), ("ProfilerConfig", "ProfilingParameters")):
        yield from _entries(section(body, parent) or {}, name, (parent,))
    algorithm = section(body, "AlgorithmSpecification") or {}
    for name in ("ContainerEntrypoint", "ContainerArguments"):
        words = algorithm.get(name)
        for index, word in enumerate(words if isinstance(words, list) else ()):
            yield ("AlgorithmSpecification", name, index), word


def _entries(parent: Section, name: str, path: Path) -> Iterator[tuple[Path, JsonValue]]:
    for key, value in (section(parent, name) or {}).items():
        yield (*path, name, key), value
