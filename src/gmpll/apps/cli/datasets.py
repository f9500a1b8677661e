"""``gmpll datasets``: what there is, what is here, and where the rest belongs."""

from __future__ import annotations

from gmpll.apps.cli import options

CAPTION = "In brackets: what the paper prints, where it is another figure or none (-)."


def datasets(data_home: options.DataHome = None) -> None:
    """List the data sets: their statistics, the paper's, and whether they are here."""
    from rich.console import Console
    from rich.table import Table

    from gmpll.apps.errors import UserError
    from gmpll.datasets import get_data_home, is_available, list_datasets
    from gmpll.datasets.storage import expected_path

    home = get_data_home(data_home)
    if home.exists() and not home.is_dir():
        raise UserError(f"{home} is a file: name a folder with --data-home.")

    table = Table(box=None, pad_edge=False, caption=CAPTION, caption_justify="left")
    for heading in ("name", "kind"):
        table.add_column(heading, no_wrap=True)
    for heading in ("rows", "features", "labels", "candidates"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("here")
    missing = []
    for info in list_datasets():
        cells = []
        for statistic in ("n_samples", "n_features", "n_classes", "mean_candidates"):
            ours = _text(getattr(info, statistic))
            printed = _text(getattr(info.paper, statistic, None))
            in_paper = info.kind in ("real-world", "uci")
            cells.append(f"{ours} ({printed})" if in_paper and printed != ours else ours)
        is_here = is_available(info.name, home)
        table.add_row(info.name, info.kind, *cells, "yes" if is_here else "no")
        missing += [] if is_here else [info]

    console = Console()
    console.print(table)
    if missing:
        console.print(
            "\nMissing sets are put by hand at (real-world and uci are downloaded when loaded)"
        )
    for info in missing:
        place = f"  {expected_path(info, home)}"
        console.print(place, soft_wrap=True, markup=False, highlight=False)


def _text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
