"""The least that a service can do: an endpoint of Starlette that reads JSON and answers JSON.

python -m benchmarks.bare_service
"""

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from revar.campaigns.service.app import listen


async def echo(request: Request) -> Response:
    """What was sent, parsed and written again."""
    body = msgspec.json.decode(await request.body())
    return Response(msgspec.json.encode(body), media_type="application/json")


def main() -> None:
    """Serve on loopback, at a port that is printed; with the settings of `revar serve`."""
    app = Starlette(routes=[Route("/{path:path}", echo, methods=["POST"])])
    with listen("127.0.0.1", 0) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
