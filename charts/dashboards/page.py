"""A dashboard made of rows of panels: places, numbers, and the text of its file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, DashboardLink
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model

WIDTH = 24


@dataclass(frozen=True)
class Row:
    """A heading and the panels below it, each line of which fills the width."""

    title: str
    panels: Sequence[Builder[model.Panel]]


@dataclass(frozen=True)
class Page:
    """A dashboard."""

    uid: str
    title: str
    description: str
    variables: Sequence[Builder[model.VariableModel]]
    rows: Sequence[Row]
    annotations: Sequence[AnnotationQuery] = ()

    def text(self) -> str:
        """What its file holds."""
        link = (
            DashboardLink("Parcae")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags(["parcae"])
            .as_dropdown(False)
            .include_vars(True)
            .keep_time(True)
        )
        builder = (
            Dashboard(self.title)
            .uid(self.uid)
            .description(self.description)
            .tags(["parcae"])
            .readonly()
            .refresh("30s")
            .time("now-6h", "now")
            .tooltip(model.DashboardCursorSync.CROSSHAIR)
            .variables(list(self.variables))
            .links([link])
            .annotations(list(self.annotations))
        )
        built = builder.build()
        for shown in built.links or ():
            shown.placement = ""  # the default hides it in a menu of newer Grafanas
        built.panels = list(_placed(self.rows))
        return json.dumps(built, cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _placed(rows: Sequence[Row]) -> list[model.Panel | model.RowPanel]:
    """All panels with their places and numbers, from left to right and from the top.

    Raises:
        ValueError: A line does not fill the width, or its panels differ in height.
    """
    placed: list[model.Panel | model.RowPanel] = []
    y = 0
    for row in rows:
        heading = model.RowPanel(title=row.title, id_val=len(placed) + 1, collapsed=False)
        heading.grid_pos = model.GridPos(h=1, w=WIDTH, x=0, y=y)
        placed.append(heading)
        x, y = 0, y + 1
        height = 0
        for panel in (each.build() for each in row.panels):
            asked = panel.grid_pos
            if asked is None or (x and asked.h != height):
                raise ValueError(f"{panel.title}: its line's panels are {height} high")
            height = asked.h
            panel.grid_pos = model.GridPos(h=height, w=asked.w, x=x, y=y)
            panel.id_val = len(placed) + 1
            placed.append(panel)
            x += asked.w
            if x > WIDTH:
                raise ValueError(f"{panel.title}: its line is wider than {WIDTH}")
            if x == WIDTH:
                x, y = 0, y + height
        if x:
            raise ValueError(f"{row.title}: its last line is only {x} wide")
    return placed
