"""Prints what an extra of ours needs from others: ``python requirements.py planner``.

An image installs these before our own code is there, so a change of the code leaves that layer as
it was. Words after the extra name packages to leave out, as in ``requirements.py agent torch``.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PYPROJECT = Path("pyproject.toml")


def requirements(project: dict[str, Any], extra: str) -> Iterator[str]:
    """What the project and one of its extras need, and what the extras that this one names need."""
    yield from project["dependencies"]
    for line in project["optional-dependencies"][extra]:
        ours = re.fullmatch(rf"{project['name']}\[([\w,]+)\]", line)
        if ours is None:
            yield line
        else:
            for other in ours[1].split(","):
                yield from requirements(project, other)


def name_of(requirement: str) -> str:
    """The package's name, without its versions."""
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def main() -> None:
    """Print them, one a line."""
    extra, *left_out = sys.argv[1:]
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    for line in sorted(set(requirements(project, extra))):
        if name_of(line) not in left_out:
            print(line)


if __name__ == "__main__":
    main()
