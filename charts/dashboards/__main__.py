"""Writes all dashboards into the chart, where a test holds them equal to this code.

``python -m charts.dashboards [FOLDER]`` writes them elsewhere.
"""

import sys
from pathlib import Path

from charts.dashboards import fleet, job
from charts.dashboards.page import Page

FOLDER = Path(__file__).resolve().parent.parent / "parcae" / "dashboards"


def pages() -> tuple[Page, ...]:
    """All dashboards."""
    return job.page(), fleet.page()


def main(folder: Path) -> None:
    """Writes them."""
    folder.mkdir(exist_ok=True)
    for page in pages():
        (folder / f"{page.uid}.json").write_text(page.text())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else FOLDER)
