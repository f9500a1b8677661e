"""The routes of the service, and the server around them."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import joblib
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gmpll.apps.serving.requests import CSV, JSON, MAX_ROWS, answered, as_csv, read_request
from gmpll.apps.tables.errors import InputError
from gmpll.apps.tables.loaded import LoadedModel
from gmpll.apps.web.security import Terms
from gmpll.apps.web.server import LOOPBACK, LocalServer, listen

#: More connections at a time are answered with 503.
MAX_CONNECTIONS = 256
#: A prediction that takes longer, the wait for others included, is answered with 503.
PREDICT_SECONDS = 30.0
TERMS = Terms(
    is_open=lambda path: path == "/health",
    token_hint="send the header Authorization: Bearer TOKEN",
    content_types=(JSON, CSV),
    only="JSON (application/json) and CSV (text/csv) are understood",
    max_body=8 * 2**20,
)
SENTENCES = {
    404: "There are /health, /schema and /predict, and nothing else.",
    405: "Ask /health and /schema with GET, and /predict with POST.",
}


def make_server(
    model: LoadedModel, host: str = LOOPBACK, port: int = 0, token: str | None = None
) -> LocalServer:
    """Listen, on a free port if it is 0."""
    return listen(make_app(model), TERMS, host, port, token, MAX_CONNECTIONS)


def make_app(model: LoadedModel) -> Starlette:
    """Build the application; it must stand behind a :class:`~gmpll.apps.web.security.Guard`."""
    workers = ThreadPoolExecutor(joblib.cpu_count(), thread_name_prefix="predict")
    schema = {
        "columns": model.input_columns_,
        "classes": model.classes_.tolist(),
        "method": model.method_,
        "created": model.created_,
        "versions": model.versions_,
        "max_rows": MAX_ROWS,
        "max_bytes": TERMS.max_body,
    }

    async def predict(request: Request) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        body = await request.body()
        try:
            async with asyncio.timeout(PREDICT_SECONDS):
                found = await asyncio.get_running_loop().run_in_executor(
                    workers, lambda: answered(model, read_request(model, body, kind))
                )
        except InputError as error:
            raise HTTPException(400, " ".join(str(error).split())) from error
        except TimeoutError:
            raise HTTPException(503, "The prediction takes too long: send fewer rows.") from None
        if kind == CSV:
            return Response(as_csv(found["predictions"]), media_type=CSV)
        return JSONResponse(found)

    def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = SENTENCES.get(error.status_code, error.detail)
        return JSONResponse({"error": text}, error.status_code, error.headers)

    routes = [
        Route("/health", lambda request: JSONResponse({"status": "ok"})),
        Route("/schema", lambda request: JSONResponse(schema)),
        Route("/predict", predict, methods=["POST"]),
    ]
    failed = JSONResponse({"error": "The service failed to answer this request."}, 500)
    handlers: dict[Any, Any] = {HTTPException: refused, Exception: lambda *_: failed}
    return Starlette(routes=routes, exception_handlers=handlers)
