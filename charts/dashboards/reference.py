"""The panels in words, for people: the tables of docs/dashboards.md, from the dashboards' JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path


def table(dashboard: str) -> str:
    """What each panel shows and what to look for, a heading for each row of panels."""
    lines: list[str] = []
    for panel in json.loads(dashboard)["panels"]:
        if panel["type"] == "row":
            lines += ["", f"**{panel['title']}**", "", "| panel | what it tells |", "|---|---|"]
        elif panel["type"] == "text":
            lines.append(f"| {panel['title']} | Where the reasons are that no metric has. |")
        else:
            lines.append(f"| {panel['title']} | {panel['description']} |")
    return "\n".join(lines[1:]) + "\n"


def refreshed(text: str, folder: Path) -> str:
    """A page of docs with its tables made anew from the dashboards in a folder."""

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}\n{table((folder / f'{found[2]}.json').read_text())}\n{found[3]}"

    pattern = r"(<!-- panels: ([a-z-]+) -->\n).*?(<!-- end: \2 -->\n)"
    return re.sub(pattern, made, text, flags=re.DOTALL)
