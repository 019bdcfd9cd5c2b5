"""Tells requests of web pages from those of this machine's programs; the twin and the gateway ask it. Pure.

Any page that a browser shows may send requests to a port of this machine. Browsers say so (Origin,
Sec-Fetch-Site), or the page comes under a host name that its owner bound to 127.0.0.1 (DNS rebinding).
Source: W3C, "Fetch Metadata Request Headers"; RFC 6454, section 7.
"""

from collections.abc import Collection, Iterator, Mapping
from urllib.parse import urlsplit

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""Names that a client on this machine writes into the header Host, beside the port. DNS rebinding cannot use
these."""

_OWN_SITES = frozenset({"none", "same-origin"})
"""Sec-Fetch-Site of an address that somebody typed, and of the server's own pages."""
_MOST_SHOWN = 100
"""Characters of a name in a refusal."""


def foreign_page(headers: Mapping[str, str], *, proxies: Collection[str] = ()) -> str | None:
    """Say why a request must be refused as another page's; None where it is no such request.

    Args:
        headers: Names in lower case; values of a repeated header joined with a comma.
        proxies: Names, in lower case and without port, under which the user said that a proxy shows this
            server. No header of a request adds to them: a page may send any X-Forwarded header.
    """
    return (
        foreign_name(headers, proxies=proxies)
        or foreign_origin(headers, proxies=proxies)
        or foreign_site(headers)
    )


def foreign_name(headers: Mapping[str, str], *, proxies: Collection[str] = ()) -> str | None:
    """Say which host name of a request is neither loopback nor a proxy's; None where all of them are."""
    for name in _names(headers):
        if name not in LOOPBACK_NAMES and name not in proxies:
            shown = f"{name[:_MOST_SHOWN]!r}" if name else "no name"
            return f"The host is {shown}: use 127.0.0.1 or localhost."
    return None


def foreign_origin(headers: Mapping[str, str], *, proxies: Collection[str] = ()) -> str | None:
    """Say that the page that sends a request has another origin; None for own pages and for programs.

    An own page's origin is the host and port that the request is sent to. Behind a proxy only the browser
    knows that port, so the name decides there.
    """
    origin = headers.get("origin")
    if origin is None:
        return None
    network_location = _network_location(origin)
    own = {location.strip().lower() for location in _locations(headers)}
    if network_location in own or _host_name(network_location) in proxies:
        return None
    return f"The page is of another origin, {origin[:_MOST_SHOWN]!r}."


def foreign_site(headers: Mapping[str, str]) -> str | None:
    """Say that the browser calls a request another site's or another port's; None where it does not."""
    site = headers.get("sec-fetch-site", "none").strip().lower()
    return None if site in _OWN_SITES else f"A page elsewhere sends it ({site[:_MOST_SHOWN]})."


def _names(headers: Mapping[str, str]) -> Iterator[str]:
    return (_host_name(location.strip().lower()) for location in _locations(headers))


def _locations(headers: Mapping[str, str]) -> Iterator[str]:
    """Host with port as the client wrote it, and as each proxy says that the client wrote it."""
    yield headers.get("host", "")
    yield from filter(str.strip, headers.get("x-forwarded-host", "").split(","))


def _network_location(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:  # brackets that hold no IPv6 address
        return ""


def _host_name(location: str) -> str:
    """Return the name without its port; empty if it is not a name with at most a number behind it."""
    name, colon, port = location.rpartition(":")
    if location.endswith("]") or not colon:
        name = location
    elif not port.isdecimal():
        return ""
    return name[1:-1] if name.startswith("[") and name.endswith("]") else name
