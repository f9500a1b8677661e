"""The routes: HTTP in front of a :class:`~gmpll.apps.review.session.ReviewSession`."""

from __future__ import annotations

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

#: The only files that are served; a path never reaches the disk.
_STATIC = {
    "review.html": "text/html; charset=utf-8",
    "review.css": "text/css; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "render.js": "text/javascript; charset=utf-8",
    "server.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_STATUS: dict[type[Exception], int] = {RequestError: 400, ConflictError: 409, ReviewError: 507}
_MAX_TAB = 64


def make_app(session: ReviewSession) -> Starlette:
    """Build the application; it must stand behind a :class:`~gmpll.apps.review.security.Guard`."""
    api = _Api(session)
    routes = [
        Route("/", _static("review.html")),
        *[Route(f"/static/{name}", _static(name)) for name in _STATIC],
        Route("/api/state", api.state),
        Route("/api/next", api.next_item),
        Route("/api/items/{row:int}", api.item),
        Route("/api/images/{row:int}", api.image),
        Route("/api/labels", api.labels),
        Route("/api/decisions", api.decisions),
        Route("/api/changes", api.changes),
        Route("/api/export/{format}", api.export),
        Route("/api/decide", _posted(api.decide), methods=["POST"]),
        Route("/api/undo", _posted(api.undo), methods=["POST"]),
        Route("/api/rematch", _posted(api.rematch), methods=["POST"]),
    ]
    handlers: dict[Any, Callable[..., Any]] = dict.fromkeys(_STATUS, _refused)
    handlers[HTTPException] = _no_such_page
    return Starlette(routes=routes, exception_handlers=handlers)


def _static(name: str) -> Callable[[Request], Response]:
    content = files("gmpll.apps.review").joinpath("static", name).read_bytes()

    def serve(request: Request) -> Response:
        # The header has its charset already; Starlette would add it a second time.
        return Response(content, headers={"Content-Type": _STATIC[name]})

    return serve


def _refused(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, _STATUS[type(error)])


def _no_such_page(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return JSONResponse({"error": "There is no such page."}, status)


class _Api:
    """The endpoints. They run in threads, so a slow one does not stop the others."""

    def __init__(self, session: ReviewSession) -> None:
        self.session = session

    def state(self, request: Request) -> Response:
        return JSONResponse(self.session.progress())

    def next_item(self, request: Request) -> Response:
        passed = request.query_params.get("passed", "")
        row = int(passed) if re.fullmatch("[0-9]{1,9}", passed) else None
        return self._shown(self.session.next_item(_tab(request.query_params.get("tab")), row))

    def _shown(self, item: dict[str, Any] | None) -> Response:
        return JSONResponse({"item": item, "progress": self.session.progress()})

    def item(self, request: Request) -> Response:
        return self._shown(self.session.item(request.path_params["row"]))

    def image(self, request: Request) -> Response:
        image = self.session.image(request.path_params["row"])
        return Response(image.content, media_type=image.media_type)

    def labels(self, request: Request) -> Response:
        return JSONResponse(self.session.labels_like(request.query_params.get("q", "")))

    def decisions(self, request: Request) -> Response:
        return JSONResponse(self.session.decided_rows())

    def changes(self, request: Request) -> Response:
        return JSONResponse(self.session.changes())

    def export(self, request: Request) -> Response:
        chosen = FORMATS.get(request.path_params["format"])
        if chosen is None:
            raise RequestError(f"The formats are {', '.join(FORMATS)}.")
        disposition = f'attachment; filename="{chosen.file_name}"'
        headers = {"Content-Type": chosen.media_type, "Content-Disposition": disposition}
        return Response(chosen.write(self.session).encode(), headers=headers)

    def decide(self, asked: dict[str, Any]) -> Response:
        row, tab = _whole(asked, "row"), _tab(asked.get("tab"))
        code = _whole(asked, "code") if asked.get("code") is not None else None
        name = asked.get("name")
        if name is not None and not isinstance(name, str):
            raise RequestError("The name of a label is a text.")
        decision = Decision(str(asked.get("action")), code, name)
        try:
            self.session.decide(row, decision, seen_version=_whole(asked, "version"), tab=tab)
        except ConflictError as error:
            # The row as it is now comes along, so that the reviewer sees what he would replace.
            return JSONResponse({"error": str(error), "item": self.session.item(row)}, 409)
        return self._shown(self.session.next_item(tab))

    def undo(self, asked: dict[str, Any]) -> Response:
        row = self.session.undo(_tab(asked.get("tab")))
        return self._shown(None if row is None else self.session.item(row))

    def rematch(self, asked: dict[str, Any]) -> Response:
        self.session.match_again()
        return JSONResponse(self.session.progress(), 202)


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


def _tab(value: Any) -> str:
    if not isinstance(value, str) or not value.isalnum() or len(value) > _MAX_TAB:
        raise RequestError(f"tab is a name of 1 to {_MAX_TAB} letters and digits.")
    return value
