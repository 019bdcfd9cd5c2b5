"""Gateways on this machine: whether the one that programs shall use answers, and what each did so far."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from trainmaster_client.doctor.findings import Finding, Seen, bad, good, skipped
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.gateway.gateway_files import known_states, state_folder, status
from trainmaster_client.gateway.passed_calls import ENDPOINT_VARIABLE, is_a_gateway


def local_gateway(seen: Seen) -> Finding:
    """Check that the gateway programs shall use answers. No token is shown, as reports are sent to others."""
    named = seen.env.get(ENDPOINT_VARIABLE, "").rstrip("/")
    urls = [state.endpoint_url for state in known_states(state_folder(seen.env))]
    wanted = [named] if is_a_gateway(named) else []
    states = {url: status(url) for url in dict.fromkeys([*wanted, *urls])}
    running = {_port(url): said for url, said in states.items() if said is not None}
    seen.facts["gateways"] = running
    if wanted and states[named] is None:
        return bad(
            Trouble.GATEWAY_SILENT, f"{ENDPOINT_VARIABLE} is of a gateway on port {_port(named)}: no answer"
        )
    if not running:
        return skipped("none runs here")
    return good("; ".join(f"port {port}: {_summary(said)}" for port, said in running.items()))


def _port(url: str) -> str:
    return str(urlsplit(url).port or "")


def _summary(state: Mapping[str, Any]) -> str:
    operations = state.get("operations") or {}
    calls = sum(operation["calls"] for operation in operations.values())
    errors = sum(sum(operation["errors"].values()) for operation in operations.values())
    slowest = max(operations.items(), key=lambda item: item[1]["p95_ms"], default=None)
    times = f", slowest {slowest[0]}: p95 {slowest[1]['p95_ms']} ms" if slowest else ""
    return f"{calls} calls, {errors} errors{times}, {state.get('memory_mb')} MB, {state.get('credentials')}"
