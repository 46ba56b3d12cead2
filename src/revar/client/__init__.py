"""Campaigns of a service, over HTTP: the methods of a local campaign, in plain and async calls."""

from revar.client.async_episode import AsyncEpisode
from revar.client.asynchronous import AsyncCampaign, AsyncConnection, connect_async
from revar.client.connection import ConnectedCampaign, Connection, connect
from revar.client.service import ServiceError

__all__ = [
    "AsyncCampaign",
    "AsyncConnection",
    "AsyncEpisode",
    "ConnectedCampaign",
    "Connection",
    "ServiceError",
    "connect",
    "connect_async",
]
