"""Commands that show a finished run: its figures, and its report."""

from __future__ import annotations

from pathlib import Path

import click

from .options import WORKSPACE, open_workspace

__all__ = ["figures", "report"]


@click.command()
@click.argument("run_id", metavar="RUN", default="last")
@WORKSPACE
@click.option("--width", type=click.IntRange(20), help="Cells across (default: the terminal's).")
@click.option("--height", type=click.IntRange(6), default=16, show_default=True, help="Lines of one panel.")
@click.option("--datasets", type=click.IntRange(1), default=3, show_default=True, help="Released datasets to draw.")
@click.option(
    "--bin-width",
    "widths",
    multiple=True,
    metavar="VARIABLE=WIDTH",
    help="Width of the bars, such as days=25. Repeatable.",
)
@click.option(
    "--svg",
    "svg_directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write one SVG file a figure in DIR instead.",
)
def figures(
    run_id: str,
    directory: Path | None,
    width: int | None,
    height: int,
    datasets: int,
    widths: tuple[str, ...],
    svg_directory: Path | None,
) -> None:
    """Draw what RUN (a number, or last) released beside the confidential data: distributions, intervals, sweeps.

    Bars and curves of fewer than three confidential records are left out.
    """
    from .charts import draw_figures, write_svgs

    workspace = open_workspace(directory)
    if svg_directory is None:
        click.echo(draw_figures(workspace, run_id, width, height, datasets, widths))
    else:
        paths = write_svgs(workspace, run_id, svg_directory, datasets, widths)
        click.echo(f"{len(paths)} figures written to {svg_directory}")


@click.command()
@click.argument("run_id", metavar="RUN", default="last")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE.html", help="Where to write it."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@WORKSPACE
def report(run_id: str, output: Path, directory: Path | None, *, force: bool) -> None:
    """Write the report of RUN (a number, or last) as one HTML file: release, verdicts, utility, risk, figures, sources."""
    from .reporting import write_report

    click.echo(write_report(open_workspace(directory), run_id, output, force=force))
