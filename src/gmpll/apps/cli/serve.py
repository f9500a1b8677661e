"""``gmpll serve``: predictions over HTTP by the model of an earlier run."""

import os
from contextlib import suppress

import typer

from gmpll.apps.cli import options
from gmpll.apps.errors import UserError

TOKEN_VARIABLE = "GMPLL_TOKEN"
#: A token that is shorter can be guessed.
MIN_TOKEN = 16


def serve(
    model: options.Model, port: options.Port = 8000, host: options.Host = "127.0.0.1"
) -> None:
    """Answer requests for predictions over HTTP, with the model that gmpll disambiguate wrote.

    Clients send the token that is printed, or that of the environment variable GMPLL_TOKEN.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if token is not None and not (
        len(token) >= MIN_TOKEN and token.isascii() and token.isprintable()
    ):
        raise UserError(f"{TOKEN_VARIABLE} is no token: use {MIN_TOKEN} or more plain characters.")
    with options.plain_errors(model, extra="review"):
        from gmpll._progress import plan
        from gmpll.apps.progress import shown
        from gmpll.apps.serving.app import make_server
        from gmpll.apps.tables.loaded import load
        from gmpll.apps.tables.saved import model_file
        from gmpll.apps.tables.steps import loading_steps
        from gmpll.apps.web.security import is_loopback

        with shown(), plan(loading_steps(model_file(model))):
            loaded = load(model)
        if loaded.n_files_:
            raise UserError(
                f"{model} needs embedding files, which requests cannot bring: resolve again with "
                "the embeddings in a column of the table."
            )
        server = make_server(loaded, host, port, token)
    if not is_loopback(host):
        typer.echo(
            f"Warning: the service listens on {host}. Whoever reaches it and learns the token can "
            "ask it, and the traffic is not encrypted.",
            err=True,
        )
    typer.echo(f"Serving {model} at {server.address}")
    if token is None:
        typer.echo(f"Token: {server.token}")
    typer.echo("Press Ctrl-C to stop.")
    with suppress(KeyboardInterrupt):  # the ordinary way to end
        server.run()
    typer.echo("Stopped.")
