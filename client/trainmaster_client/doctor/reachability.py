"""The way to the API: where it is, whether it can be reached, whether it is the one, and the clock."""

import ipaddress
import socket
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError
from botocore.utils import get_environ_proxies

from trainmaster_client.api import API_URL_PARAMETER, API_URL_VARIABLE, find_api_url
from trainmaster_client.doctor.findings import Finding, Seen, bad, good, skipped
from trainmaster_client.errors import ApiNotConfiguredError, ApiUnreachableError, InvalidApiUrlError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import ERROR_TYPE_HEADER, is_own, skew_of
from trainmaster_client.http.transport import checked_url, region_of

_HTTPS_PORT = 443


def configuration(seen: Seen) -> Finding:
    try:
        seen.found = seen.make_session()
    except BotoCoreError as error:  # AWS_PROFILE names a profile that does not exist
        return bad(Trouble.CREDENTIALS_UNREADABLE, str(error))
    return good(f"profile {seen.found.profile_name}")


def api_url(seen: Seen) -> Finding:
    try:
        seen.api_url = find_api_url(None, seen.session, seen.env)
    except ApiNotConfiguredError as error:
        return bad(Trouble.NO_API_URL, str(error))
    seen.is_from_parameter = not seen.env.get(API_URL_VARIABLE)
    source = f"SSM parameter {API_URL_PARAMETER}" if seen.is_from_parameter else API_URL_VARIABLE
    seen.facts["api_url"] = {"url": seen.api_url, "source": source}
    return good(f"{seen.api_url} from {source}")


def url_form(seen: Seen) -> Finding:
    try:
        checked_url(seen.api_url)
    except InvalidApiUrlError as error:
        return bad(error.trouble or Trouble.BAD_API_URL, seen.api_url)
    return good(seen.api_url)


def region(seen: Seen) -> Finding:
    host = urlsplit(seen.api_url).hostname or ""
    name = region_of(host) or seen.session.region_name
    if not name:
        return bad(Trouble.NO_REGION, "none")
    seen.region = name
    return good(f"{name} from {'the URL' if region_of(host) else 'the AWS configuration'}")


def host(seen: Seen) -> Finding:
    """Check that the host resolves; a private API has private addresses wherever it can be reached from."""
    parts = urlsplit(seen.api_url)
    if get_environ_proxies(seen.api_url):
        return skipped("a proxy looks it up")
    name = parts.hostname or ""
    try:
        infos = socket.getaddrinfo(name, parts.port or _HTTPS_PORT, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        return bad(Trouble.HOST_UNKNOWN, f"{name}: {error}")
    addresses = sorted({str(address[0]) for *_, address in infos})
    seen.facts["addresses"] = addresses
    if region_of(name) and any(ipaddress.ip_address(address).is_global for address in addresses):
        return bad(Trouble.PUBLIC_ADDRESS, ", ".join(addresses))
    return good(", ".join(addresses))


def connection(seen: Seen) -> Finding:
    try:
        seen.unsigned = seen.noted("GET /pools, not signed", seen.transport().look("/pools"))
    except ApiUnreachableError as error:
        return bad(error.trouble or Trouble.NO_ANSWER, str(error))
    return good(f"status {seen.unsigned.status}")


def gateway(seen: Seen) -> Finding:
    """Check that API Gateway answers: it names the type of what it refuses, as it does an unsigned call."""
    answer = seen.unsigned
    assert answer is not None, "the connection is checked first"
    if answer.headers.get(ERROR_TYPE_HEADER) or is_own(answer):
        return good(answer.headers.get(ERROR_TYPE_HEADER, "trainmaster"))
    kind = answer.headers.get("content-type", "no content type")
    return bad(Trouble.NOT_THE_API, f"status {answer.status} with {kind}")


def clock(seen: Seen) -> Finding:
    assert seen.unsigned is not None, "the connection is checked first"
    skew = skew_of(seen.unsigned, now=seen.now())
    if skew is None:
        return skipped("the answer has no date")
    seen.facts["clock_ahead_seconds"] = skew.ahead.total_seconds()
    return good(str(skew)) if skew.is_allowed else bad(Trouble.CLOCK, str(skew))
