"""Recordings of spot instances: model, readers of public formats, generator, statistics.

The picture (:mod:`parcae_traces.plot`) is imported on its own, as it needs matplotlib.
"""

from parcae_traces.compact import parse_compact, save_compact, write_compact
from parcae_traces.generator import Market, generate
from parcae_traces.library import bundled_paths, bundled_traces, find_trace
from parcae_traces.model import DEFAULT_NOTICE_S, Change, Event, Life, Moment, Trace
from parcae_traces.readers import read_trace
from parcae_traces.roster import Roster
from parcae_traces.scaling import scale, slots_of
from parcae_traces.segments import PUBLISHED, Segment, check_within, cut, parse_segment
from parcae_traces.series import INTERVAL_S, Series, series_of
from parcae_traces.statistics import Statistics, statistics_of

__all__ = [
    "DEFAULT_NOTICE_S",
    "INTERVAL_S",
    "PUBLISHED",
    "Change",
    "Event",
    "Life",
    "Market",
    "Moment",
    "Roster",
    "Segment",
    "Series",
    "Statistics",
    "Trace",
    "bundled_paths",
    "bundled_traces",
    "check_within",
    "cut",
    "find_trace",
    "generate",
    "parse_compact",
    "parse_segment",
    "read_trace",
    "save_compact",
    "scale",
    "series_of",
    "slots_of",
    "statistics_of",
    "write_compact",
]
