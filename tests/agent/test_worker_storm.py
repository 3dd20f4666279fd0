"""Everything at once, drawn from a seed: what no list of cases would have thought of."""

from __future__ import annotations

import pytest
from crew import MakeCrew
from storm import Storm

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("seed", range(4))
def test_any_storm_leaves_the_same_bits(make_crew: MakeCrew, seed: int) -> None:
    crew = make_crew(every_steps=7)
    assert Storm(crew, seed).run() > 0
