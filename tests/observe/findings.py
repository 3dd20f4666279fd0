"""Every query's answers held against the records, and the table of it. Pure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from . import expected_alerts, expected_fleet, expected_job
from .compare import Labels, Moment, compare, span, words
from .expectation import Expectation
from .prometheus import Series
from .questions import ALERTS, Question
from .records import Records

SETTLED_S = 8.0
"""After which an operator that has started has asked all that it tells of."""
_MOST_SERIES = 3

Answers = Mapping[Question, Sequence[Series]]


@dataclass(frozen=True)
class Finding:
    """One query, at all moments."""

    question: Question
    expectation: Expectation
    moments: Sequence[Moment]

    @property
    def wrong(self) -> list[Moment]:
        """Moments at which it does not agree with the records, and goes on not to.

        A status is written when something but its numbers changes, and those every five seconds:
        what lasted for less stands in none. So a disagreement counts that two comparisons in a row
        find.
        """
        if len(self.moments) == 1:
            return [moment for moment in self.moments if moment.wrong]
        found = [False, *(bool(moment.wrong) for moment in self.moments), False]
        return [
            moment
            for moment, (before, now, after) in zip(
                self.moments, zip(found, found[1:], found[2:], strict=False), strict=False
            )
            if now and (before or after)
        ]

    @property
    def said(self) -> list[Moment]:
        """Moments at which there was an answer."""
        return [moment for moment in self.moments if moment.answered]

    @property
    def shown(self) -> Moment | None:
        """The moment that tells most: the first wrong one, or the last with something not 0."""
        if self.wrong:
            return self.wrong[0]
        told = [m for m in self.said if any(m.answered.values())]
        shown = told or self.said or self.moments
        return shown[-1] if shown else None


def expected(records: Records) -> dict[tuple[str, str, str], Expectation]:
    """By page, title and name."""
    alerts = {(name, ""): e for name, e in expected_alerts.expectations(records).items()}
    pages = {
        "parcae-job": expected_job.expectations(records),
        "parcae-fleet": expected_fleet.expectations(records),
        ALERTS: alerts,
    }
    return {(page, *key): e for page, found in pages.items() for key, e in found.items()}


def find(answers: Answers, records: Records, moments: Sequence[float]) -> list[Finding]:
    """Holds each query against the records at each of these moments."""
    expectations = expected(records)
    found = []
    for question, series in answers.items():
        expectation = expectations[question.page, question.title, question.name]
        expect = functools.cache(expectation.expect)
        seen = [
            compare(at_s, _at(series, at_s), expect, expectation.lag)
            for at_s in moments
            if expectation.without_operator or _is_watched(records, at_s)
        ]
        found.append(Finding(question, expectation, [m for m in seen if m is not None]))
    return found


def table(findings: Sequence[Finding], write: Callable[[str], None], began_s: float) -> None:
    """Each panel and alert: the query, the value, the record's value, whether they agree."""
    page = title = ""
    for finding in findings:
        question = finding.question
        if question.page != page:
            page = question.page
            write(f"── {page} ──")
        if question.title != title:
            title = question.title
            write(title)
        name = f"{question.name}: " if question.name else ""
        write(f"  {name}{question.expr}")
        for line in _told(finding, began_s):
            write(f"      {line}")


def _told(finding: Finding, began_s: float) -> list[str]:
    moment = finding.shown
    if moment is None:
        return ["no moment could be compared"]
    at = f"at {moment.at_s - began_s:.0f} s"
    verdict = _verdict(finding)
    note = f" ({finding.expectation.note})" if finding.expectation.note else ""
    lines = []
    for labels in sorted(moment.answered.keys() | moment.recorded.keys(), key=sorted):
        value = moment.answered.get(labels, math.nan)
        shown = "nothing" if math.isnan(value) else f"{value:.4g}"
        record = span(moment.recorded[labels]) if labels in moment.recorded else "nothing"
        lines.append(f"{words(labels)}{shown} | record {record}")
    if not lines:
        lines = ["nothing | record nothing"]
    if len(lines) > _MOST_SERIES and not finding.wrong:
        lines = [*lines[:_MOST_SERIES], f"and {len(lines) - _MOST_SERIES} more"]
    told = [f"{at}: {'; '.join(lines)}", f"{verdict}; by {finding.expectation.source}{note}"]
    return [*told, *(f"    {wrong}" for wrong in moment.wrong)]


def _verdict(finding: Finding) -> str:
    if finding.wrong:
        return f"WRONG at {len(finding.wrong)} of {len(finding.moments)} moments"
    return f"ok at {len(finding.moments)} moments, {len(finding.said)} with data"


def _is_watched(records: Records, at_s: float) -> bool:
    """Whether an operator was there to be scraped, and had been for a while."""
    looks = records.looks.between(at_s - SETTLED_S, at_s + 1.0)
    return bool(looks) and all(look.operators for look in looks)


def _at(series: Sequence[Series], at_s: float) -> dict[Labels, float]:
    found = {each.labels: each.values.get(at_s, math.nan) for each in series}
    # Not a number: a quantile of nothing, which Grafana draws as a gap.
    return {labels: value for labels, value in found.items() if not math.isnan(value)}
