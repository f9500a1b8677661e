"""``gmpll review``: decide the doubtful rows on a local web page."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gmpll._atomic_io import is_stdout, write_atomically
from gmpll.apps.cli import options
from gmpll.apps.cli.options import plain_errors
from gmpll.apps.cli.outputs import check_file
from gmpll.apps.errors import UserError

if TYPE_CHECKING:
    from gmpll.apps.review.session import ReviewSession


def review(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder that gmpll disambiguate wrote to.")
    ],
    port: options.Port = 0,
    host: options.Host = "127.0.0.1",
    open_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the pictures; by default the input's own."),
    ] = None,
    guidelines: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Markdown file that the page shows to reviewers."),
    ] = None,
    apply: Annotated[
        bool,
        typer.Option(
            "--apply",
            help="Fit again with the decisions as known labels, replace the results in DIR, keep "
            "the old ones, and serve no page.",
        ),
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the labels as they stand and serve no page."),
    ] = None,
    export_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Of --export: csv, label-studio or argilla; csv by default if FILE ends so.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing FILE of --export.")
    ] = False,
) -> None:
    """Go through the doubtful rows on a local web page, the most informative first."""
    if not directory.is_dir():
        raise UserError(f"{directory} is no folder: name the one that gmpll disambiguate wrote to.")
    if images is not None and not images.is_dir():
        raise UserError(f"{images} is no folder: name the folder of the pictures.")
    if export is not None:
        check_file(export, force=force, option="--export")
    if export is None and (force or export_format is not None):
        option = "--force" if export_format is None else "--format"
        raise UserError(f"{option} is about a file to write: it goes with --export only.")
    if apply and export is not None:
        raise UserError("--apply and --export are two steps: give one after the other.")
    with plain_errors(export or directory, extra="review"):
        if apply:
            _apply(directory)
            return
        from gmpll.apps.review.session import open_review

        session = open_review(directory, images=images, guidelines=guidelines)
        if export is not None:
            _export(session, export, export_format)
        else:
            _serve(session, host, port, open_browser)


def _apply(directory: Path) -> None:
    from gmpll.apps.decisions.archive import check_not_under_review
    from gmpll.apps.progress import shown
    from gmpll.apps.review.applying import apply_decisions

    check_not_under_review(directory)
    with shown():
        applied = apply_decisions(directory)
    typer.echo("\n  ".join(map(str, (applied, *applied.files))))


def _export(session: ReviewSession, path: Path, export_format: str | None) -> None:
    from gmpll.apps.review.export import FORMATS

    if export_format is None:
        if path.suffix.lower() not in (".csv", ""):
            raise UserError(
                f"{path} does not end in .csv: say what to write with --format "
                f"({', '.join(FORMATS)})."
            )
        export_format = "csv"
    if export_format not in FORMATS:
        raise UserError(f"--format {export_format} is unknown: use one of {', '.join(FORMATS)}.")
    try:
        write_atomically(path, FORMATS[export_format].write(session).encode())
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error
    typer.echo(str(path), err=is_stdout(path))


def _serve(session: ReviewSession, host: str, port: int, open_browser: bool) -> None:
    from gmpll.apps.review.app import make_server
    from gmpll.apps.web.security import is_loopback

    server = make_server(session, host, port)
    if not is_loopback(host):
        typer.echo(
            f"Warning: the page listens on {host}. Whoever reaches it and learns the token sees "
            "the data and can decide, and the traffic is not encrypted.",
            err=True,
        )
    typer.echo(f"Review page: {server.address}")
    typer.echo("Press Ctrl-C to stop; every decision is kept as it is made.")
    if open_browser:
        import webbrowser

        webbrowser.open(server.address)
    with closing(session.store), suppress(KeyboardInterrupt):  # the ordinary way to end
        server.run()
    typer.echo(f"Decisions: {session.store.path}")
