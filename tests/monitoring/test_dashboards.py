"""The dashboards: as their code makes them, whole, and understood by a current Grafana."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asked import CHART, DASHBOARDS, ROOT, dashboard, panels
from charts.dashboards import reference

SCHEMA = 42  # Grafana 12's; older ones read it, newer ones raise it as they load
WIDTH = 24


def test_they_are_what_their_code_makes(tmp_path: Path) -> None:
    # In a process of its own: the SDK warns at import, and warnings are errors here.
    argv = [sys.executable, "-W", "ignore", "-m", "charts.dashboards", str(tmp_path)]
    subprocess.run(argv, cwd=ROOT, check=True, timeout=60)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text() for path in (CHART / "dashboards").iterdir()}
    assert set(made) == {f"{name}.json" for name in DASHBOARDS}
    assert made == kept, "run `make dashboards`"


def test_docs_tell_what_each_panel_shows() -> None:
    text = (ROOT / "docs" / "dashboards.md").read_text()
    for name in DASHBOARDS:
        for panel in panels(name):
            assert f"\n| {panel['title']} | " in text
    assert reference.refreshed(text, CHART / "dashboards") == text, "run `make dashboards`"


@pytest.mark.parametrize("name", DASHBOARDS)
class TestEach:
    def test_is_known_by_its_uid(self, name: str) -> None:
        page = dashboard(name)
        assert page["uid"] == name
        assert page.get("id") is None  # a number would overwrite what has it
        assert page["schemaVersion"] == SCHEMA
        assert page["title"]
        assert page["description"]

    def test_panels_have_numbers_of_their_own(self, name: str) -> None:
        numbers = [panel["id"] for panel in dashboard(name)["panels"]]
        assert all(number > 0 for number in numbers)
        assert len(set(numbers)) == len(numbers)

    def test_panels_fill_the_page_and_do_not_overlap(self, name: str) -> None:
        places = [panel["gridPos"] for panel in dashboard(name)["panels"]]
        covered: set[tuple[int, int]] = set()
        for place in places:
            xs = range(place["x"], place["x"] + place["w"])
            ys = range(place["y"], place["y"] + place["h"])
            cells = set(itertools.product(xs, ys))
            assert cells
            assert not cells & covered
            assert max(xs) < WIDTH
            covered |= cells
        height = max(y for _, y in covered) + 1
        assert len(covered) == WIDTH * height  # no holes: they look like panels that are missing

    def test_panels_say_what_to_look_for(self, name: str) -> None:
        titles = [panel["title"] for panel in panels(name)]
        assert len(set(titles)) == len(titles)
        for panel in panels(name):
            assert len(panel["description"].split()) >= 8, panel["title"]

    def test_curves_have_units_and_legends(self, name: str) -> None:
        for panel in panels(name):
            if panel["type"] == "timeseries":
                assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
                assert panel["options"]["legend"]["showLegend"], panel["title"]
                assert all(target["legendFormat"] for target in panel["targets"]), panel["title"]

    def test_the_data_source_is_chosen_by_the_reader(self, name: str) -> None:
        page = dashboard(name)
        chosen = {"type": "prometheus", "uid": "${datasource}"}
        for panel in panels(name):
            for asking in [panel, *panel.get("targets", [])]:
                if panel["type"] != "text":
                    assert asking["datasource"] == chosen, panel["title"]
        [source] = [each for each in variables(page) if each["type"] == "datasource"]
        assert (source["name"], source["query"]) == ("datasource", "prometheus")

    def test_queries_of_a_panel_have_letters_of_their_own(self, name: str) -> None:
        for panel in panels(name):
            letters = [target["refId"] for target in panel.get("targets", [])]
            assert len(set(letters)) == len(letters), panel["title"]

    def test_every_variable_is_used(self, name: str) -> None:
        page = dashboard(name)
        text = json.dumps({**page, "templating": {}})
        for variable in variables(page):
            assert f"${variable['name']}" in text or f"${{{variable['name']}" in text

    def test_overrides_name_series_that_are_there(self, name: str) -> None:
        for panel in panels(name):
            drawn = {target["legendFormat"] for target in panel.get("targets", [])}
            if panel["type"] != "timeseries":
                continue
            for override in panel["fieldConfig"]["overrides"]:
                if override["matcher"]["id"] == "byName":
                    assert override["matcher"]["options"] in drawn, panel["title"]


def variables(page: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page["templating"]["list"]
    return found


def test_jobs_of_the_fleet_lead_to_their_dashboard() -> None:
    text = json.dumps(dashboard("parcae-fleet"))
    names = {variable["name"] for variable in variables(dashboard("parcae-job"))}
    assert "/d/parcae-job?" in text
    for name in ("datasource", "namespace", "job"):
        assert name in names
        assert f"var-{name}=" in text
