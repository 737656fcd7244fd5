"""The web application: a JSON API over the store, and the page that reads it."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prony.base.clock import SystemClock, iso
from prony.base.errors import ConfigError, LaunchError, PronyError
from prony.measure.result import Row
from prony.store.store import Selection, StoredVersion
from prony.web import api, assets

Load = Callable[[], Selection]
LoadVersions = Callable[[str], tuple[StoredVersion, ...]]
Answer = Callable[[Sequence[Row], Mapping[str, str], datetime | None], bytes]
Endpoint = Callable[[Request], Awaitable[Response]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
_NOW = SystemClock().wall
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}


def create_app(
    load: Load,
    *,
    versions: LoadVersions = lambda _: (),
    title: str = "Prony",
    store: str = "",
    allowed_hosts: Sequence[str] = LOOPBACK,
    now: Callable[[], datetime] = _NOW,
) -> Starlette:
    """Return the application. Raises LaunchError when the page's browser library is missing.

    load is called for each request, off the event loop, and may block; versions(key) for each card of a row.
    store: its name for people. allowed_hosts: Host headers that are answered ("*" for all),
    so that a foreign page cannot read a loopback server by rebinding DNS.
    """
    assets.text(assets.D3)
    routes = [
        Route("/", _page),
        Route("/healthz", _health),
        Route("/api/meta", _meta_endpoint(load, now, title, store)),
        Route("/api/charts", _endpoint(load, now, api.charts)),
        Route("/api/table", _endpoint(load, now, api.rows_table)),
        Route("/api/table.csv", _endpoint(load, now, api.table_csv, "text/csv; charset=utf-8")),
        Route("/api/rows/{key}", _row_endpoint(load, versions, now)),
        Mount("/static", StaticFiles(directory=assets.STATIC)),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts), www_redirect=False),
            Middleware(SecurityHeaders),
            Middleware(GZipMiddleware, minimum_size=1024, compresslevel=5),
        ],
        exception_handlers={HTTPException: _http_fault},
    )


class SecurityHeaders:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


async def _page(request: Request) -> Response:
    return _tagged(request, await run_in_threadpool(assets.bytes_of, "index.html"), "text/html; charset=utf-8")


async def _health(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _meta_endpoint(load: Load, now: Callable[[], datetime], title: str, store: str) -> Endpoint:
    def meta(selected: Selection, query: Mapping[str, str]) -> bytes:
        for key in query:
            raise ConfigError(f"'{key}' is not a query key here", allowed="none")
        return api.meta(selected.rows, title, store, iso(now()), selected.unreadable)

    async def endpoint(request: Request) -> Response:
        return await _answer(request, load, lambda selected: meta(selected, request.query_params), "application/json")

    return endpoint


def _endpoint(load: Load, now: Callable[[], datetime], answer: Answer, media: str = "application/json") -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await _answer(request, load, lambda found: answer(found.rows, request.query_params, now()), media)

    return endpoint


def _row_endpoint(load: Load, versions: LoadVersions, now: Callable[[], datetime]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        key = request.path_params["key"]
        return await _answer(
            request, load, lambda found: api.row_detail(found.rows, key, now(), versions(key)), "application/json"
        )

    return endpoint


async def _answer(request: Request, load: Load, make: Callable[[Selection], bytes], media: str) -> Response:
    try:
        selected = await run_in_threadpool(load)
        return _tagged(request, await run_in_threadpool(make, selected), media)
    except api.UnknownRowError as error:
        return _fault(404, error)
    except LaunchError as error:
        return _fault(503, error)
    except ConfigError as error:
        return _fault(400, error)


def _tagged(request: Request, body: bytes, media: str) -> Response:
    tag = f'W/"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if tag in {part.strip() for part in request.headers.get("if-none-match", "").split(",")}:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=media, headers=headers)


def _fault(status: int, error: PronyError) -> Response:
    told = {"message": error.message, "allowed": error.allowed, "fix": error.fix}
    return JSONResponse({"error": told}, status_code=status)


async def _http_fault(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    allowed = "/, /healthz, /api/meta, /api/charts, /api/table, /api/table.csv, /api/rows/{key}"
    told = {"message": f"{request.method} {request.url.path}: not served here", "allowed": allowed, "fix": ""}
    return JSONResponse({"error": told}, status_code=status)
