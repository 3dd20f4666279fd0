"""Every change among the layouts of one to four workers, by workers that live on."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from crew import Crew, MakeCrew
from proof import assert_same_bits, assert_sound, settle, undisturbed

from parcae_api.events import MigrationKind
from parcae_api.job import Reduction

pytestmark = pytest.mark.processes

Grid = tuple[int, int]
GRIDS: list[Grid] = [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (1, 4), (2, 2), (4, 1)]
NAMES = "abcde"


def every_change(grids: Sequence[Grid]) -> list[Grid]:
    """A walk in which every grid follows every other one once (Euler's, in a complete graph)."""
    rest = {a: [b for b in grids if b != a] for a in grids}
    stack, walk = [grids[0]], []
    while stack:
        if rest[stack[-1]]:
            stack.append(rest[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    changes = list(pairwise(walk))
    assert len(set(changes)) == len(changes) == len(grids) * (len(grids) - 1)
    return walk


def walk(crew: Crew, grids: Iterable[Grid], *, steps: int = 1) -> None:
    """Train some steps in each.

    Who takes which cell is drawn anew each time; of those that drop out, the first stays as
    donor in every other change, and the rest are lost to the plan like after a notice.
    """
    chance = random.Random(7)
    crew.start(*NAMES)
    before: list[str] = []
    for number, (data, pipeline) in enumerate(grids):
        members = chance.sample(NAMES, data * pipeline)
        leaving = [name for name in before if name not in members]
        held = set(before) & set(members)
        needed = leaving if not held or number % 2 else leaving[:1]
        donors = leaving if _covers(crew, held, needed) is False else needed
        crew.plan(data, pipeline, members, donors=donors)
        for _ in range(steps):
            crew.wait_one_more()
        before = members


def _covers(crew: Crew, held: set[str], donors: Sequence[str]) -> bool:
    """Whether those hold all layers together."""
    layers: set[int] = set()
    for name in [*held, *donors]:
        holding = crew.hands[name].state.holding
        layers |= set(holding.layers) if holding else set()
    return len(layers) == crew.layers


def test_every_change_of_layout_gives_the_same_bits(make_crew: MakeCrew) -> None:
    crew = make_crew(layers=6, micro_batches=8)
    walk(crew, every_change(GRIDS))
    assert len(crew.migrations) >= 55
    assert {m.kind for m in crew.migrations} >= {MigrationKind.PIPELINE}
    assert all(m.steps_replayed == 0 and not m.sudden for m in crew.migrations)
    assert not crew.rollbacks
    settle(crew)


def test_fast_reduction_comes_close(make_crew: MakeCrew) -> None:
    crew = make_crew(micro_batches=8, reduction=Reduction.FAST)
    walk(crew, [*GRIDS, *GRIDS[::-1]], steps=2)
    crew.wait_idle(crew.pause(), *NAMES)
    steps = crew.wait_saved()
    assert_sound(crew, steps)
    mine = [line.loss for line in crew.ledger().steps]
    assert mine == pytest.approx(undisturbed(crew).losses(steps), rel=0.01)


@pytest.mark.parametrize(
    ("micro_batches", "args"),
    [
        (8, {"sgd": True, "clip": None, "tied": False}),
        (3, {"clip": 0.05, "dropout": 0.5}),
    ],
    ids=["sgd", "more-stages-than-micro-batches"],
)
def test_other_trainings_on_changing_layouts(
    make_crew: MakeCrew, micro_batches: int, args: dict[str, object]
) -> None:
    """With 3 micro-batches, 1x4 and one pipeline of 2x2 are filled the GPipe way."""
    crew = make_crew(micro_batches=micro_batches, **args)
    grids = [grid for grid in GRIDS if grid[0] <= micro_batches]
    walk(crew, [*grids, (1, 4), (2, 2), (1, 1)], steps=2)
    settle(crew)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_cut_between_layers_does_not_show(make_crew: MakeCrew, dtype: str) -> None:
    """Layers without parameters, frozen, without gradient, changing their input, of any dtype."""
    crew = make_crew("zoo", steps=10_000, dtype=dtype, layers=10, micro_batches=6)
    walk(crew, [*GRIDS, (1, 4), (1, 3), (1, 2)])
    settle(crew)


class TestKinds:
    def test_what_a_change_moves(self, make_crew: MakeCrew) -> None:
        crew = make_crew()
        crew.start(*"abcde")

        def change(data: int, pipeline: int, workers: str) -> tuple[MigrationKind, int]:
            migration = crew.migration(crew.plan(data, pipeline, workers))
            crew.wait_one_more()
            return migration.kind, migration.bytes_moved

        crew.plan(2, 2, "abcd")
        crew.wait_committed(1)
        assert change(2, 2, "cdab") == (MigrationKind.INTRA_STAGE, 0)
        kind, one = change(2, 2, "adcb")
        assert (kind, one) == (MigrationKind.INTRA_STAGE, 0)
        kind, stage = change(2, 2, "edcb")
        assert kind is MigrationKind.INTER_STAGE
        assert stage > 0
        kind, moved = change(1, 4, "edcb")
        assert (kind, moved) == (MigrationKind.PIPELINE, moved)
        assert 0 < moved < 2 * stage
        settle(crew)

    def test_a_standby_is_told_and_waits(self, make_crew: MakeCrew) -> None:
        crew = make_crew(steps=8)
        crew.start("a", "b", "c")
        revision = crew.plan(1, 2, "ab")
        crew.wait_idle(revision, "c")
        assert crew.hands["c"].state.holding is None
        crew.wait_saved(8)
        assert_same_bits(crew, 8)
