"""HTTP in front of a :class:`~gmpll.apps.review.session.ReviewSession`: routes and server."""

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gmpll.apps.decisions.errors import ConflictError, RequestError, ReviewError
from gmpll.apps.decisions.store import Decision
from gmpll.apps.review.export import FORMATS
from gmpll.apps.review.session import ReviewSession
from gmpll.apps.web.security import Terms
from gmpll.apps.web.server import LOOPBACK, LocalServer, listen

#: The only files that are served; a path never reaches the disk.
_STATIC = {
    "review.html": "text/html; charset=utf-8",
    "review.css": "text/css; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "render.js": "text/javascript; charset=utf-8",
    "server.js": "text/javascript; charset=utf-8",
    "dialogs.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_STATUS: dict[type[Exception], int] = {RequestError: 400, ConflictError: 409, ReviewError: 507}
_MAX_TAB = 64
#: More connections at a time are answered with 503.
MAX_CONNECTIONS = 64
TERMS = Terms(
    is_open=lambda path: not path.startswith("/api/"),
    token_hint="open the address that gmpll printed",
    content_types=("application/json",),
    only="JSON is understood",
    max_body=64 * 2**10,  # a decision takes some hundred bytes
)


def make_server(
    session: ReviewSession, host: str = LOOPBACK, port: int = 0, token: str | None = None
) -> LocalServer:
    """Listen, on a free port if it is 0, and say at which address; it holds the token."""
    server = listen(make_app(session), TERMS, host, port, token, MAX_CONNECTIONS)
    return server._replace(address=f"{server.address}#token={server.token}")


def make_app(session: ReviewSession) -> Starlette:
    """Build the application; it must stand behind a :class:`~gmpll.apps.web.security.Guard`."""

    def shown(item: dict[str, Any] | None, **more: Any) -> Response:
        return JSONResponse({"item": item, "progress": session.progress(), **more})

    def next_item(request: Request) -> Response:
        passed = request.query_params.get("passed", "")
        row = int(passed) if re.fullmatch("[0-9]{1,9}", passed) else None
        return shown(session.next_item(_tab(request.query_params.get("tab")), row))

    def item(request: Request) -> Response:
        return shown(session.item(request.path_params["row"]))

    def image(request: Request) -> Response:
        content, media_type = session.image(request.path_params["row"])
        return Response(content, media_type=media_type)

    def labels(request: Request) -> Response:
        return JSONResponse(session.labels_like(request.query_params.get("q", "")))

    def export(request: Request) -> Response:
        chosen = FORMATS.get(request.path_params["format"])
        if chosen is None:
            raise RequestError(f"The formats are {', '.join(FORMATS)}.")
        disposition = f'attachment; filename="{chosen.file_name}"'
        headers = {"Content-Type": chosen.media_type, "Content-Disposition": disposition}
        return Response(chosen.write(session).encode(), headers=headers)

    def decide(asked: dict[str, Any]) -> Response:
        row, tab = _whole(asked, "row"), _tab(asked.get("tab"))
        code = _whole(asked, "code") if asked.get("code") is not None else None
        name = None if asked.get("name") is None else _text(asked, "name", "label")
        decision = Decision(str(asked.get("action")), code, name)
        version, reviewer = _whole(asked, "version"), _text(asked, "reviewer", "reviewer")
        try:
            session.decide(row, decision, seen_version=version, tab=tab, reviewer=reviewer)
        except ConflictError as error:
            # The row as it is now comes along, so that the reviewer sees what he would replace.
            return JSONResponse({"error": str(error), "item": session.item(row)}, 409)
        return shown(session.next_item(tab))

    def undo(asked: dict[str, Any]) -> Response:
        row, undone = session.undo(_tab(asked.get("tab")))
        return shown(None if row is None else session.item(row), undone=undone)

    def release(asked: dict[str, Any]) -> Response:
        session.store.release(_tab(asked.get("tab")))
        return JSONResponse({})

    def accept(asked: dict[str, Any]) -> Response:
        at_least, tab = asked.get("at_least"), _tab(asked.get("tab"))
        if not isinstance(at_least, float):
            raise RequestError("at_least is a number between 0 and 1.")
        accepted = session.accept_sure(
            at_least, tab=tab, reviewer=_text(asked, "reviewer", "reviewer")
        )
        return shown(session.next_item(tab), accepted=accepted)

    def decisions(request: Request) -> Response:
        asked = request.query_params
        doubt = asked.get("doubt", "")
        if doubt not in ("", "doubtful", "sure"):
            raise RequestError("doubt is doubtful or sure.")
        filters = {"label": asked.get("label", ""), "text": asked.get("text", ""), "doubt": doubt}
        return JSONResponse(session.decided_rows(reviewer=asked.get("reviewer"), **filters))

    def rematch(asked: dict[str, Any]) -> Response:
        session.match_again()
        return JSONResponse(session.progress(), 202)

    def apply(asked: dict[str, Any]) -> Response:
        session.apply()
        return JSONResponse(session.progress(), 202)

    routes = [
        Route("/", _static("review.html")),
        *[Route(f"/static/{name}", _static(name)) for name in _STATIC],
        Route("/api/state", lambda request: JSONResponse(session.progress())),
        Route("/api/next", next_item),
        Route("/api/items/{row:int}", item),
        Route("/api/images/{row:int}", image),
        Route("/api/labels", labels),
        Route("/api/decisions", decisions),
        Route("/api/changes", lambda request: JSONResponse(session.changes())),
        Route("/api/summary", lambda request: JSONResponse(session.summary())),
        Route("/api/sure", lambda request: JSONResponse(session.sure_rows())),
        Route("/api/guidelines", lambda request: JSONResponse(session.guidelines)),
        Route("/api/export/{format}", export),
        *[
            Route(f"/api/{handle.__name__}", _posted(handle), methods=["POST"])
            for handle in (decide, undo, release, accept, rematch, apply)
        ],
    ]
    handlers: dict[Any, Callable[..., Any]] = dict.fromkeys([*_STATUS, HTTPException], _refused)
    return Starlette(routes=routes, exception_handlers=handlers)


def _static(name: str) -> Callable[[Request], Response]:
    content = files("gmpll.apps.review").joinpath("static", name).read_bytes()
    # The header has its charset already; Starlette would add it a second time.
    return lambda request: Response(content, headers={"Content-Type": _STATIC[name]})


def _refused(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, HTTPException):
        return JSONResponse({"error": "There is no such page."}, error.status_code)
    return JSONResponse({"error": str(error)}, _STATUS[type(error)])


def _posted(handle: Callable[[dict[str, Any]], Response]) -> Callable[[Request], Any]:
    """Return an endpoint that hands on the JSON object of a request."""

    async def endpoint(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            raise RequestError("The request is no JSON.") from None
        if not isinstance(asked, dict):
            raise RequestError("The request is no JSON object.")
        return await run_in_threadpool(handle, asked)

    return endpoint


def _whole(asked: dict[str, Any], name: str) -> int:
    value = asked.get(name)
    # True is an int in Python; 2**63 is none in SQLite.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise RequestError(f"{name} is a whole number from 0 on.")
    return value


def _text(asked: dict[str, Any], key: str, whose: str) -> str:
    name = asked.get(key, "")
    if not isinstance(name, str):
        raise RequestError(f"The name of a {whose} is a text.")
    return name


def _tab(value: Any) -> str:
    if not isinstance(value, str) or not value.isalnum() or len(value) > _MAX_TAB:
        raise RequestError(f"tab is a name of 1 to {_MAX_TAB} letters and digits.")
    return value
