"""Writes all dashboards into the chart, and their panels' meaning into docs/dashboards.md.

Tests hold both equal to this code. ``python -m charts.dashboards FOLDER`` writes the dashboards
there, and nothing else.
"""

import sys
from pathlib import Path

from charts.dashboards import fleet, job, reference
from charts.dashboards.page import Page

_ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = _ROOT / "charts" / "parcae" / "dashboards"
DOCS = _ROOT / "docs" / "dashboards.md"


def pages() -> tuple[Page, ...]:
    """All dashboards."""
    return job.page(), fleet.page()


def write(folder: Path) -> None:
    """Writes their JSON."""
    folder.mkdir(exist_ok=True)
    for page in pages():
        (folder / f"{page.uid}.json").write_text(page.text())


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    else:
        write(FOLDER)
        DOCS.write_text(reference.refreshed(DOCS.read_text(), FOLDER))
