"""The kinds of panels that the dashboards are made of, each with a description of what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from charts.dashboards.queries import SOURCE
from grafana_foundation_sdk.builders import common, stat, statetimeline, table, text, timeseries
from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models import common as look
from grafana_foundation_sdk.models.dashboard import (
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
)
from grafana_foundation_sdk.models.text import TextMode

SAMPLES = "suffix: samples/s"
_ROWS = 8
SHORT = 4


def _named(queries: Sequence[Dataquery]) -> list[Dataquery]:
    """Gives each its letter, by which a panel tells them apart."""
    return [query.ref_id(chr(ord("A") + i)).datasource(SOURCE) for i, query in enumerate(queries)]


def curves(
    title: str, tells: str, width: int, *queries: Dataquery, unit: str = "short"
) -> timeseries.Panel:
    """Lines over time, with their newest values in the legend."""
    legend = (
        common.VizLegendOptions()
        .display_mode(look.LegendDisplayMode.TABLE)
        .placement(look.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull", "mean", "max"])
    )
    tooltip = common.VizTooltipOptions().mode(look.TooltipDisplayMode.MULTI)
    return (
        timeseries.Panel()
        .title(title)
        .description(tells)
        .datasource(SOURCE)
        .targets(list(_named(queries)))
        .unit(unit)
        .interval("15s")
        .height(_ROWS)
        .span(width)
        .line_width(1)
        .fill_opacity(0)
        .show_points(look.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(legend)
        .tooltip(tooltip.sort(look.SortOrder.DESCENDING))
    )


def steps(
    title: str, tells: str, width: int, *queries: Dataquery, unit: str = "short"
) -> timeseries.Panel:
    """Whole numbers over time: they jump, and are nothing in between."""
    panel = curves(title, tells, width, *queries, unit=unit)
    return panel.line_interpolation(look.LineInterpolation.STEP_AFTER).decimals(0)


def stacked(title: str, tells: str, width: int, *queries: Dataquery) -> timeseries.Panel:
    """Whole numbers over time that add up to something."""
    stack = common.StackingConfig().mode(look.StackingMode.NORMAL).group("A")
    return steps(title, tells, width, *queries).fill_opacity(40).stacking(stack).min(0)


def number(
    title: str, tells: str, width: int, *queries: Dataquery, unit: str = "short"
) -> stat.Panel:
    """The newest value, in large."""
    return (
        stat.Panel()
        .title(title)
        .description(tells)
        .datasource(SOURCE)
        .targets(list(_named(queries)))
        .unit(unit)
        .height(SHORT)
        .span(width)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .graph_mode(look.BigValueGraphMode.NONE)
        .color_mode(look.BigValueColorMode.VALUE)
        .thresholds(limits("text"))
    )


def timeline(title: str, tells: str, width: int, *queries: Dataquery) -> statetimeline.Panel:
    """What holds when: a bar for each series, coloured where it holds."""
    return (
        statetimeline.Panel()
        .title(title)
        .description(tells)
        .datasource(SOURCE)
        .targets(list(_named(queries)))
        .interval("15s")
        .height(_ROWS)
        .span(width)
        .show_value(look.VisibilityMode.NEVER)
        .fill_opacity(80)
        .line_width(0)
        .legend(common.VizLegendOptions().show_legend(False))
    )


def listing(
    title: str,
    tells: str,
    width: int,
    queries: Sequence[Dataquery],
    transformations: Sequence[DataTransformerConfig],
) -> table.Panel:
    """A table."""
    return (
        table.Panel()
        .title(title)
        .description(tells)
        .datasource(SOURCE)
        .targets(list(_named(queries)))
        .transformations(list(transformations))
        .height(_ROWS)
        .span(width)
        .filterable(True)
    )


def words(title: str, width: int, content: str) -> text.Panel:
    """Text, for what is no metric."""
    panel = text.Panel().title(title).mode(TextMode.MARKDOWN).content(content)
    return (
        panel.description("Where to find what no metric says, in words.").height(_ROWS).span(width)
    )


def limits(base: str, **colors_from: float) -> ThresholdsConfig:
    """Colours by value: ``limits("green", orange=600, red=3600)``."""
    found = [Threshold(value=None, color=base)]
    found += [Threshold(value=value, color=color) for color, value in colors_from.items()]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def named_values(texts: Mapping[str, tuple[str, str]]) -> ValueMap:
    """Words and colours for values: ``{"1": ("up", "green")}``."""
    return ValueMap(
        {
            value: ValueMappingResult(text=said, color=color, index=index)
            for index, (value, (said, color)) in enumerate(texts.items())
        }
    )


def also(name: str, value: object) -> DynamicConfigValue:
    """A property of one series only."""
    return DynamicConfigValue(id_val=name, value=value)


def transform(name: str, **options: object) -> DataTransformerConfig:
    """A step from what queries answer to what a table shows."""
    return DataTransformerConfig(id_val=name, options=options)
