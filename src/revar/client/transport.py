"""The edge to httpx: what both kinds of connection tell it, and what they make of its answers."""

import ssl
from typing import TYPE_CHECKING, Any

from revar.campaigns.service.messages import CAMPAIGN_HEADER
from revar.client.calls import Call
from revar.client.exchange import Lost, Received, read_retry_after
from revar.client.service import Service

if TYPE_CHECKING:
    import httpx


def client_options(service: Service) -> dict[str, Any]:
    """How an httpx client is made. Redirects are not followed: the token is for this address."""
    return {"headers": service.headers, "timeout": service.timeout, "follow_redirects": False}


def request_options(service: Service, call: Call[Any]) -> dict[str, Any]:
    """How a request is made."""
    headers = {} if call.body is None else {"Content-Type": "application/json"}
    if call.campaign_id is not None:
        headers[CAMPAIGN_HEADER] = call.campaign_id
    return {
        "method": call.method,
        "url": service.address + call.path,
        "content": call.body,
        "headers": headers,
    }


def received(response: "httpx.Response") -> Received:
    """An answer that has been read to its end."""
    retry_after = read_retry_after(response.headers.get("retry-after"))
    return Received(response.status_code, response.content, retry_after)


def lost(error: "httpx.HTTPError") -> Lost:
    """An answer that never came."""
    return Lost(str(error) or type(error).__name__, hopeless=_is_about_certificates(error))


def _is_about_certificates(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
