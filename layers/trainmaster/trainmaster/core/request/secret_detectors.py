"""Patterns of secrets by look or name: a training job shows its request to all who may describe it."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Detector:
    finds: str
    """Noun for messages, such as "a GitHub token"."""
    contains: str
    """One of these words is in whatever it finds, in lower case: few texts need the pattern."""
    pattern: str


ANYWHERE = (
    Detector("an AWS access key id", "akia|asia", r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}"),
    Detector("a private key", "-----begin ", r"-----BEGIN (?!PUBLIC KEY-)[A-Z0-9 ]+-----"),
    Detector(
        "a GitHub token",
        "gho_|ghp_|ghs_|ghu_|ghr_|github_pat_",
        r"\bgh[opsur]_[A-Za-z0-9]{36}|\bgithub_pat_[A-Za-z0-9_]{22}",
    ),
    Detector("a GitLab token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20}"),
    Detector("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30}"),
    Detector(
        "an OpenAI or Anthropic key", "sk-", r"\bsk-(?:[a-z0-9]{2,8}-[A-Za-z0-9_-]{20}|[A-Za-z0-9]{20})"
    ),
    Detector("a Stripe key", "k_live_", r"\b[rs]k_live_[A-Za-z0-9]{20}"),
    Detector("a Google API key", "aiza", r"\bAIza[A-Za-z0-9_-]{35}"),
    Detector("an npm token", "npm_", r"\bnpm_[A-Za-z0-9]{36}"),
    Detector("a PyPI token", "pypi-age", r"\bpypi-AgE[A-Za-z0-9_-]{50}"),
    Detector("a Databricks token", "dapi", r"\bdapi[0-9a-f]{32}\b"),
    Detector("a Slack token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10}"),
    Detector(
        "a Slack webhook", "hooks.slack.com/", r"(?i:\bhooks\.slack\.com/(?:services|workflows|triggers)/)\w"
    ),
    Detector("a Discord webhook", "api/webhooks/", r"(?i:\bdiscord(?:app)?\.com/api/webhooks/)\d"),
    Detector("a JSON web token", ".eyj", r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\."),
    Detector("a bearer token", "bearer ", r"\b(?i:bearer) {1,3}[A-Za-z0-9._~+/-]{16,}"),
    Detector("a URL with a password", "://", r"://[^\s/:@]{0,256}:(?!\$\{?[A-Za-z_]|\{|<|\*)[^\s/@]{1,256}@"),
    Detector(
        "a presigned URL",
        "signature=|awsaccesskeyid=",
        r"[?&](?i:X-(?:Amz|Goog)-Signature|Signature|AWSAccessKeyId)=",
    ),
    Detector(
        "a shared access signature",
        "sig=|sharedaccesssignature=",
        r"[?&;](?i:sig|SharedAccessSignature)=[A-Za-z0-9%+/]{20,}",
    ),
    Detector("a Weights & Biases key", "wandb", r"\b(?i:wandb)\b.{0,40}?\b[0-9a-f]{40}\b"),
)
"""Secrets recognised by their own shape, in any text. No pattern may begin again within what it repeats
without bound: the time would grow with the square of the length. Sources: the issuers' documents and the
public rules of gitleaks and detect-secrets, read in November 2026."""
WHOLE = (
    Detector(
        "an AWS secret access key",
        "",
        r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])(?!/[a-z]+/)[A-Za-z0-9/+]{40}",
    ),
    Detector("a key of 40 hexadecimal digits", "", r"[0-9a-f]{40}"),
)
"""Secrets recognised only if they are the whole text: within a longer text they may be anything."""

SECRETS = re.compile("|".join(f"(?:{detector.pattern})" for detector in ANYWHERE))
_ONE_BY_ONE = tuple(
    (word, detector.finds, re.compile(detector.pattern))
    for detector in ANYWHERE
    for word in detector.contains.split("|")
)
_SHORTEST = 15
"""Shortest text that may hold a secret, unless it is a URL, in characters."""
_WHOLE = tuple((detector.finds, re.compile(rf'"?(?:{detector.pattern})"?')) for detector in WHOLE)
_HEX = WHOLE[1].finds


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_SECRET_WORDS = _words_of(
    """
    password passwd passphrase pass pwd secret secrets credential credentials token pat apikey secretkey
    privatekey accesskey accesstoken authtoken authorization
    """
)
_SECRET_KEYS = _words_of(
    """
    api secret private access storage account encryption signing master shared auth ssh service license
    """
)
"""Words that make a secret of the word ``key`` behind them."""
_HARMLESS_TOKENS = _words_of(
    """
    pad padding eos bos unk mask sep cls eot fim special stop start end begin first last new next max min num
    n per image video audio vision text patch additional trigger placeholder class prompt separator system
    user assistant response instruction think tool prefix suffix middle sentence word sub char byte target
    source control newline dummy empty blank reserved summary memory register forced decoder task lang
    language speaker vocab vocabulary continuation delimiter train test eval input output context completion
    draft
    """
)
"""Words that make the word ``token`` behind them one of a text, which is no secret."""
_HARMLESS_PASSES = _words_of(
    """
    first second one two three single multi forward backward num n max per high low band by train eval
    test warmup decode refine
    """
)
_HASHES = _words_of(
    """
    sha sha1 commit revision rev hash digest checksum git version ref etag snapshot code codebase base tree
    head build fingerprint id uuid md5
    """
)
"""Words in the names of values that are as long as a key and are none."""
_COUNTS = {"token": re.compile(r'"?[-+]?[0-9.]{1,16}"?'), "pass": re.compile(r'"?[0-9]{1,3}"?')}
_SHORTEST_KEY = 8
_KEYS_OF_PLACES = _words_of("storage account encryption master shared service")
"""Words before ``key`` that also occur in names of columns and places, whose values are short."""
_NO_SECRET = re.compile(
    r'["\']?(?:|true|false|none|null|unknown|required|optional|str|string|bool|int\d*|float\d*|0|1|\*+|<.{0,200}>|\[.{0,200}\]'
    r"|(?:arn:|ssm:|s3://|file:|/|\./|\$|\{|os\.environ).{0,2048}"
    r'|[\w./-]{1,256}\.(?:json|pem|txt|ya?ml|ini|crt|key|pub|env))["\']?'
    r"|-----BEGIN PUBLIC KEY-----[\s\S]{0,2048}",
    re.IGNORECASE,
)
"""Harmless values under a secret's name: nothing, a switch, the place where it is kept, a public key.

The SDK v3 puts such a key into each job of a remote function, as REMOTE_FUNCTION_SECRET_KEY. Source:
sagemaker-core 2.27, remote_function/job.py."""
_ASSIGNED = re.compile(
    r"(?<![\w.-])(?P<dashes>-{0,2})(?P<name>[A-Za-z][\w.-]{0,100})[\"'\\]{0,4}"
    r"(?:[ \t]{0,3}[=:][ \t]{0,3}|(?P<space>[ \t]{1,3}))[\"'\\]{0,4}(?P<value>[^\s\"'\\,;&)}\]]{1,512})"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_=-])")
_CALLED = "a secret, by what it is called"


def secret_in(value: str, *, name: str = "") -> str | None:
    """Name the kind of secret that a free text holds, without quoting it; None if no secret is recognised.

    Args:
        value: The text of a hyperparameter, a variable, a tag or an argument.
        name: The value's name; for an argument the option before it.
    """
    if calls_for_secret(name) and not _is_harmless(name, value):
        return _CALLED
    return _by_shape(value, name) or _assigned(value) or _encoded(value)


def secret_in_text(text: str) -> str | None:
    """Do the same for texts that are names or places: recognise only secrets with a shape of their own."""
    if len(text) < _SHORTEST and "://" not in text and "=" not in text:
        return None
    low = text.lower()
    for word, finds, pattern in _ONE_BY_ONE:
        if word in low and pattern.search(text):
            return finds
    return None


@lru_cache(maxsize=4096)
def calls_for_secret(name: str) -> bool:
    """Tell by its last words whether a name calls for a secret: ``hubToken`` does, ``eos_token`` does not."""
    words = _words(name)
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "token":
        return before not in _HARMLESS_TOKENS
    if last == "pass":
        return before not in _HARMLESS_PASSES
    return last in _SECRET_WORDS or (last == "key" and before in _SECRET_KEYS)


def option_named(argument: str) -> str:
    """Return the option whose value is the next argument; empty if this argument is no such option."""
    return argument if argument.startswith("-") and "=" not in argument and " " not in argument else ""


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name[-200:])]


def _is_harmless(name: str, value: str) -> bool:
    """Tell whether a value under a secret's name is none.

    A number under a token's or pass's name counts them, though a password may be a number too; keys are long.
    """
    counts = _COUNTS.get(_words(name)[-1])
    if counts is not None and counts.fullmatch(value):
        return True
    is_short = len(value) < _SHORTEST_KEY and not _KEYS_OF_PLACES.isdisjoint(_words(name)[-2:-1])
    return is_short or _NO_SECRET.fullmatch(value) is not None


def _by_shape(value: str, name: str) -> str | None:
    hashes = not _HASHES.isdisjoint(_words(name))
    for finds, pattern in _WHOLE:
        if pattern.fullmatch(value) and not (hashes if finds == _HEX else _is_text_in_base64(value)):
            return finds
    return secret_in_text(value)


def _assigned(text: str) -> str | None:
    """Recognise assignments within a text: ``secret=x``, ``"password": "x"``, ``--password x``."""
    for name, value in _assignments(text):
        if calls_for_secret(name) and not _is_harmless(name, value):
            return _CALLED
    return None


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    for match in _ASSIGNED.finditer(text):
        if match["space"] is None or (match["dashes"] and not match["value"].startswith("-")):
            yield match["name"], match["value"]


def _encoded(text: str) -> str | None:
    for decoded in _decoded(_BASE64.findall(text)):
        finding = _by_shape(decoded, "") or _assigned(decoded)
        if finding is not None:
            return f"{finding}, in base64"
    return None


def _is_text_in_base64(value: str) -> bool:
    """Tell whether it is base64 of printable text.

    Of random bytes only about one in three is printable ASCII.
    """
    return any(text.isprintable() for text in _decoded([value.strip('"')]))


def _decoded(runs: Iterable[str]) -> Iterator[str]:
    for run in runs:
        padded = run.rstrip("=") + "=" * (-len(run.rstrip("=")) % 4)
        try:
            yield base64.b64decode(padded.translate(_URL_SAFE)).decode("ascii").strip()
        except (binascii.Error, UnicodeDecodeError):
            continue


_URL_SAFE = str.maketrans("-_", "+/")
