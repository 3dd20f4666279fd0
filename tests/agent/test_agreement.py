"""What members agree on: who is stale, where to resume, what is lost, who sends what to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from crew import even_layout
from hypothesis import given, settings
from hypothesis import strategies as st

from parcae_agent.agreement import Agreement, Record, Transfer, agree
from parcae_api.plan import Plan, PlanReason

LAYERS = 6
ALL = tuple(range(LAYERS))


def plan(data: int, pipeline: int, members: Sequence[str], *, donors: Sequence[str] = ()) -> Plan:
    return Plan(
        revision=9,
        reason=PlanReason.LOSS,
        why="a test",
        created_unix_s=0.0,
        layout=even_layout(data, pipeline, layers=LAYERS, micro_batches=8),
        grid=tuple(tuple(members[d * pipeline : (d + 1) * pipeline]) for d in range(data)),
        donors=tuple(donors),
    )


def member(worker: str, *, of: Sequence[str] = "abcd", **given: Any) -> Record:
    """A member of epoch 5 with all layers of 10 steps, unless said otherwise."""
    record = Record(
        worker=worker,
        applied=10,
        reached=10,
        layers=ALL,
        agreed_revision=5,
        agreed_members=tuple(of),
        formed_revision=5,
        boundaries=(0, LAYERS),
        commit_scale=0.5,
    )
    change = {"reached": given.get("applied", 10), **given}
    return replace(record, **change)


def newcomer(worker: str, **given: Any) -> Record:
    return Record(worker=worker, **given)


class TestResume:
    def test_the_first_epoch_starts_from_nothing(self) -> None:
        agreement = agree(plan(2, 1, "ab"), [newcomer("a"), newcomer("b")])
        assert agreement.first
        assert (agreement.resume, agreement.restore) == (0, ALL)
        assert agreement.rolled_back_from is None
        assert agreement.steps_replayed == 0

    def test_all_at_the_same_step_go_on_there(self) -> None:
        agreement = agree(plan(2, 1, "ab"), [member("a"), member("b")])
        assert agreement.resume == 10
        assert agreement.roll_forward_scale is None
        assert not agreement.stale
        assert not agreement.first

    def test_who_had_reduced_applies_what_another_committed(self) -> None:
        behind = member("a", applied=9, pending=9, commit_scale=0.1, attempting=True)
        agreement = agree(plan(2, 1, "ab"), [behind, member("b", commit_scale=0.5)])
        assert agreement.resume == 10
        assert agreement.roll_forward_scale == 0.5
        assert not agreement.stale
        assert agreement.steps_replayed == 0

    def test_a_step_that_nobody_committed_is_dropped_and_run_again(self) -> None:
        reduced = member("a", pending=10, attempting=True)
        agreement = agree(plan(2, 1, "ab"), [reduced, member("b", attempting=True)])
        assert agreement.resume == 10
        assert agreement.roll_forward_scale is None
        assert agreement.steps_replayed == 1

    def test_the_outcome_is_known_from_whoever_was_told(self) -> None:
        """One that got the state as a copy, in an epoch that did not form, knows no scale."""
        copied = member("a", commit_scale=None)
        behind = member("b", applied=9, pending=9)
        agreement = agree(plan(3, 1, "abc"), [copied, behind, member("c", commit_scale=0.25)])
        assert agreement.roll_forward_scale == 0.25

    def test_without_any_known_outcome_the_one_behind_is_stale(self) -> None:
        restored = member("a", commit_scale=None)
        behind = member("b", applied=9, pending=9)
        agreement = agree(plan(2, 1, "ab"), [restored, behind])
        assert agreement.resume == 10
        assert agreement.stale == {1}
        assert agreement.roll_forward_scale is None

    def test_a_member_two_steps_behind_is_stale(self) -> None:
        agreement = agree(plan(2, 1, "ab"), [member("a"), member("b", applied=8, pending=8)])
        assert agreement.stale == {1}


class TestStale:
    def test_a_zombie_that_sat_out_an_agreed_epoch_holds_nothing(self) -> None:
        """Though it claims more steps: the others went back and it does not know."""
        zombie = member("z", of="abz", applied=12, agreed_revision=4)
        agreement = agree(plan(2, 1, "az"), [member("a", of="ab"), zombie])
        assert agreement.resume == 10
        assert agreement.stale == {1}
        assert agreement.transfers == tuple(Transfer(k, 0, 1) for k in ALL)

    def test_its_layers_do_not_count_as_held(self) -> None:
        zombie = member("z", of="abz", agreed_revision=4, layers=(3, 4, 5))
        agreement = agree(plan(1, 2, "az"), [member("a", of="ab", layers=(0, 1, 2)), zombie])
        assert agreement.rolled_back_from == 10
        assert agreement.stale == {0, 1}

    def test_a_member_that_failed_in_forming_is_not_stale(self) -> None:
        """``b`` was to be in epoch 5, heard nobody agree, and is still in epoch 4."""
        failed = member("b", agreed_revision=4, of="ab")
        agreement = agree(plan(2, 1, "ab"), [member("a", of="abc"), failed])
        assert not agreement.stale
        assert not agreement.transfers

    def test_only_the_zombie_is_left(self) -> None:
        """Then its state is the newest there is."""
        agreement = agree(plan(2, 1, "zx"), [member("z", of="abz", applied=7), newcomer("x")])
        assert agreement.resume == 7
        assert not agreement.stale

    def test_a_donor_that_stayed_behind_is_stale(self) -> None:
        donor = member("d", applied=6)
        agreement = agree(plan(2, 1, "ad"), [member("a"), donor])
        assert agreement.stale == {1}


class TestLoss:
    def test_everything_goes_back_to_the_newest_checkpoint(self) -> None:
        records = [
            member("a", layers=(0, 1, 2), checkpoints=(4, 8), attempting=True),
            newcomer("b", checkpoints=(4, 8)),
        ]
        agreement = agree(plan(1, 2, "ab"), records)
        assert agreement.resume == 8
        assert agreement.restore == ALL
        assert agreement.stale == {0, 1}
        assert agreement.rolled_back_from == 10
        assert agreement.steps_replayed == 3
        assert not agreement.transfers

    def test_or_to_the_initial_state(self) -> None:
        records = [member("a", layers=(0, 1, 2)), newcomer("b")]
        agreement = agree(plan(1, 2, "ab"), records)
        assert (agreement.resume, agreement.rolled_back_from) == (0, 10)
        assert not agreement.first

    def test_the_first_rank_says_which_checkpoint(self) -> None:
        """All must restore the same one, whatever each of them can see."""
        records = [newcomer("a", checkpoints=(4,)), newcomer("b", checkpoints=(4, 8))]
        assert agree(plan(1, 2, "ab"), records).resume == 4

    def test_what_was_rolled_back_is_told_until_an_epoch_forms(self) -> None:
        """Epoch 5 agreed on a rollback from 10 to 4 and did not form: 6 is the first to say so."""
        told = member("a", applied=4, reached=10, layers=(0, 1, 2), checkpoints=(4,))
        agreement = agree(plan(1, 2, "ab"), [told, newcomer("b")])
        assert (agreement.resume, agreement.rolled_back_from) == (4, 10)
        assert agreement.steps_replayed == 6

    def test_who_left_the_grid_before_the_newest_checkpoint_holds_too_old_a_state(self) -> None:
        """All that trained on have died: their checkpoint is worth more than a standby's copy."""
        standby = member("a", applied=4, checkpoints=(4, 48), attempting=True)
        agreement = agree(plan(2, 1, "ab"), [standby, newcomer("b")])
        assert (agreement.resume, agreement.restore) == (48, ALL)
        assert agreement.stale == {0, 1}
        assert agreement.rolled_back_from == 48
        assert agreement.steps_replayed == 0

    def test_newcomers_alone_know_of_no_rollback(self) -> None:
        records = [newcomer("a", checkpoints=(4,)), newcomer("b")]
        assert agree(plan(2, 1, "ab"), records).rolled_back_from is None

    def test_a_zombies_steps_are_not_counted_as_lost(self) -> None:
        zombie = member("z", of="abz", applied=50, agreed_revision=4)
        records = [member("a", of="ab", layers=(0, 1, 2), checkpoints=(8,)), zombie]
        assert agree(plan(1, 2, "az"), records).rolled_back_from == 10


class TestPrevious:
    def test_layout_is_that_of_the_newest_formed_epoch(self) -> None:
        """Epoch 6 was agreed on by ``a``, with other boundaries, and never formed."""
        tried = member("a", agreed_revision=6, boundaries=(0, 3, 6))
        agreement = agree(plan(2, 1, "ab"), [newcomer("b"), tried][::-1])
        assert agreement.previous_boundaries == (0, 3, 6)
        older = member("a", formed_revision=4, boundaries=(0, LAYERS))
        newer = member("b", formed_revision=5, boundaries=(0, 2, 6))
        agreement = agree(plan(2, 1, "ab"), [older, newer])
        assert agreement.previous_boundaries == (0, 2, 6)

    def test_the_last_commit_is_the_latest_anyone_made(self) -> None:
        records = [member("a", last_commit_unix_s=5.0), member("b", last_commit_unix_s=7.0)]
        assert agree(plan(2, 1, "ab"), records).last_commit_unix_s == 7.0


def test_records_must_be_one_per_member() -> None:
    with pytest.raises(ValueError, match="record of every member"):
        agree(plan(2, 1, "ab"), [member("a")])


GRIDS = [(d, p) for d in range(1, 5) for p in range(1, 5) if d * p <= 6]


@st.composite
def meetings(draw: st.DrawFn) -> tuple[Plan, list[Record]]:
    data, pipeline = draw(st.sampled_from(GRIDS))
    donors = draw(st.integers(0, 2))
    names = [f"w{i}" for i in range(data * pipeline + donors)]
    the_plan = plan(data, pipeline, names[: data * pipeline], donors=names[data * pipeline :])
    held = st.sets(st.integers(0, LAYERS - 1)).map(lambda k: tuple(sorted(k)))

    def record(name: str) -> st.SearchStrategy[Record]:
        trained = st.builds(
            lambda layers, behind, sat_out, scale: member(
                name,
                of=names if not sat_out else [*names, "other"],
                layers=layers,
                applied=10 - behind,
                pending=10 - behind if behind else None,
                agreed_revision=4 if sat_out else 5,
                commit_scale=scale,
            ),
            held,
            st.sampled_from([0, 0, 0, 1]),
            st.sampled_from([False, False, False, True]),
            st.sampled_from([0.5, 0.5, None]),
        )
        return st.one_of(trained, trained, st.just(newcomer(name)))

    return the_plan, [draw(record(name)) for name in names]


def _holds(record: Record, agreement: Agreement, rank: int) -> bool:
    return rank not in agreement.stale and bool(record.layers)


@settings(max_examples=300, deadline=None)
@given(meetings())
def test_every_cell_gets_what_it_lacks_from_a_valid_holder(
    meeting: tuple[Plan, list[Record]],
) -> None:
    the_plan, records = meeting
    agreement = agree(the_plan, records)
    layout = the_plan.layout
    assert layout is not None
    assert agree(the_plan, list(records)) == agreement  # alike on all members
    if agreement.restore:
        assert not agreement.transfers
        assert agreement.stale == frozenset(range(len(records)))
        return
    arrived = {(t.target, t.layer) for t in agreement.transfers}
    assert len(arrived) == len(agreement.transfers), "a layer was sent twice"
    for t in agreement.transfers:
        assert t.layer in records[t.source].layers
        assert _holds(records[t.source], agreement, t.source)
        assert records[t.source].applied in (agreement.resume, agreement.resume - 1)
    for rank, (_, cell) in enumerate(the_plan.cells()):
        kept = set(records[rank].layers) if _holds(records[rank], agreement, rank) else set()
        needed = set(layout.layers(cell.stage))
        assert {layer for target, layer in arrived if target == rank} == needed - kept
    behind = [r for i, r in enumerate(records) if _holds(r, agreement, i) and r.applied == 9]
    if agreement.resume == 10:
        assert (agreement.roll_forward_scale is not None) == bool(behind)


@settings(max_examples=100, deadline=None)
@given(
    data=st.integers(1, 4),
    holders=st.integers(1, 4),
)
def test_the_load_is_balanced_over_holders(data: int, holders: int) -> None:
    """Newcomers get everything; those who hold all share the sending."""
    names = [f"n{i}" for i in range(data)]
    donors = [f"h{i}" for i in range(holders)]
    records = [newcomer(n) for n in names] + [member(h, of=donors) for h in donors]
    agreement = agree(plan(data, 1, names, donors=donors), records)
    sent = Counter(t.source for t in agreement.transfers)
    assert sum(sent.values()) == data * LAYERS
    assert max(sent.values()) - min(sent[data + i] for i in range(holders)) <= 1
