"""The routes: HTTP in front of a :class:`~gmpll.apps.review.session.ReviewSession`."""

from __future__ import annotations

import json
import re
import sqlite3
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

__all__ = ["make_app"]

#: The only files that are served; a path never reaches the disk.
_STATIC = {
    "review.html": "text/html; charset=utf-8",
    "review.css": "text/css; charset=utf-8",
    "review.js": "text/javascript; charset=utf-8",
    "render.js": "text/javascript; charset=utf-8",
    "server.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_MAX_TAB = 64


def make_app(session: ReviewSession) -> Starlette:
    """Build the application; it must stand behind a :class:`~gmpll.apps.review.security.Guard`.

    Parameters
    ----------
    session : ReviewSession

    Returns
    -------
    Starlette
    """
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
        Route("/api/decide", api.decide, methods=["POST"]),
        Route("/api/undo", api.undo, methods=["POST"]),
        Route("/api/rematch", api.rematch, methods=["POST"]),
    ]
    handlers: dict[Any, Callable[..., Any]] = {
        RequestError: _answer(400),
        ConflictError: _answer(409),
        ReviewError: _answer(507),
        sqlite3.Error: _not_written,
        HTTPException: _no_such_page,
    }
    return Starlette(routes=routes, exception_handlers=handlers)


def _static(name: str) -> Callable[[Request], Response]:
    content = files("gmpll.apps.review").joinpath("static", name).read_bytes()

    def serve(request: Request) -> Response:
        # The header has its charset already; Starlette would add it a second time.
        return Response(content, headers={"Content-Type": _STATIC[name]})

    return serve


def _answer(status: int) -> Callable[[Request, Exception], JSONResponse]:
    def answer(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status)

    return answer


def _not_written(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": f"The decision was not written: {error}."}, 507)


def _no_such_page(request: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 404
    return JSONResponse({"error": "There is no such page."}, status)


class _Api:
    """The endpoints. Plain ones run in a thread, so a slow one does not stop the others."""

    def __init__(self, session: ReviewSession) -> None:
        self.session = session

    def state(self, request: Request) -> Response:
        return JSONResponse(self.session.progress())

    def next_item(self, request: Request) -> Response:
        passed = request.query_params.get("passed", "")
        row = int(passed) if re.fullmatch("[0-9]{1,9}", passed) else None
        return JSONResponse(self._next(_tab(request.query_params.get("tab")), row))

    def _next(self, tab: str, passed: int | None = None) -> dict[str, Any]:
        item = self.session.next_item(tab, passed)
        return {"item": item, "progress": self.session.progress()}

    def item(self, request: Request) -> Response:
        item = self.session.item(request.path_params["row"])
        return JSONResponse({"item": item, "progress": self.session.progress()})

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
        content = chosen.write(self.session).encode()
        disposition = f'attachment; filename="{chosen.file_name}"'
        return Response(
            content,
            headers={"Content-Type": chosen.media_type, "Content-Disposition": disposition},
        )

    async def decide(self, request: Request) -> Response:
        asked = await _json_object(request)
        return await run_in_threadpool(self._decide, asked)

    def _decide(self, asked: dict[str, Any]) -> Response:
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
        return JSONResponse(self._next(tab))

    async def undo(self, request: Request) -> Response:
        asked = await _json_object(request)
        return await run_in_threadpool(self._undo, _tab(asked.get("tab")))

    def _undo(self, tab: str) -> Response:
        row = self.session.undo(tab)
        item = None if row is None else self.session.item(row)
        return JSONResponse({"item": item, "progress": self.session.progress()})

    async def rematch(self, request: Request) -> Response:
        await run_in_threadpool(self.session.match_again)
        return JSONResponse(self.session.progress(), 202)


async def _json_object(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise RequestError("The request is no JSON.") from None
    if not isinstance(asked, dict):
        raise RequestError("The request is no JSON object.")
    return asked


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
