"""The sample ledger: a lost, doubled, replayed or rolled-back micro-batch shows, or must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from parcae_agent.ledger import (
    CommitLine,
    EpochLine,
    JobLine,
    Journal,
    Line,
    ReduceLine,
    check,
    read_ledger,
)
from parcae_api.errors import InputError, TrainingFailed

JOB = JobLine(num_layers=2, num_micro_batches=4, micro_batch_samples=3)


class Worker:
    """A worker's journal, written fluently."""

    def __init__(self) -> None:
        self.lines: list[Line] = [JOB]

    def epoch(self, revision: int, *, resume: int, layers: tuple[int, int] = (0, 2)) -> Worker:
        self.revision = revision
        self.lines.append(
            EpochLine(
                revision=revision,
                resume=resume,
                replica=0,
                stage=0,
                first_layer=layers[0],
                last_layer=layers[1],
                configuration="2x1",
                at_unix_s=float(revision),
            )
        )
        return self

    def reduces(self, step: int, *micro_batches: int) -> Worker:
        self.lines.append(
            ReduceLine(revision=self.revision, step=step, micro_batches=micro_batches)
        )
        return self

    def commits(self, step: int, loss: float | None = 0.5) -> Worker:
        self.lines.append(
            CommitLine(revision=self.revision, step=step, at_unix_s=step + 0.5, loss=loss)
        )
        return self

    def runs(self, steps: range, *micro_batches: int) -> Worker:
        for step in steps:
            self.reduces(step, *micro_batches).commits(step)
        return self


def ledger_of(*workers: Worker):  # type: ignore[no-untyped-def]
    return check([worker.lines for worker in workers])


def test_a_sound_run() -> None:
    a = Worker().epoch(1, resume=0).runs(range(3), 0, 1)
    b = Worker().epoch(1, resume=0).runs(range(3), 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.is_sound
    assert not ledger.problems
    assert ledger.samples_committed == 3 * 12
    assert [(s.step, s.revision, s.configuration, s.loss) for s in ledger.steps] == [
        (k, 1, "2x1", 0.5) for k in range(3)
    ]
    assert [s.at_unix_s for s in ledger.steps] == [0.5, 1.5, 2.5]


def test_stages_count_apart() -> None:
    a = Worker().epoch(1, resume=0, layers=(0, 1)).runs(range(2), 0, 1, 2, 3)
    b = Worker().epoch(1, resume=0, layers=(1, 2)).runs(range(2), 0, 1, 2, 3)
    assert ledger_of(a, b).is_sound


def test_a_lost_micro_batch_in_one_layer_shows() -> None:
    a = Worker().epoch(1, resume=0, layers=(0, 1)).runs(range(2), 0, 1, 2, 3)
    b = Worker().epoch(1, resume=0, layers=(1, 2))
    b.reduces(0, 0, 1, 2, 3).commits(0).reduces(1, 0, 1, 3).commits(1)
    ledger = ledger_of(a, b)
    assert (ledger.samples_lost, ledger.samples_repeated) == (3, 0)
    assert ledger.samples_committed == 2 * 12 - 3
    assert ledger.problems == ["step 1: 1 micro-batches missing, 0 counted more than once"]
    assert not ledger.is_sound


def test_a_micro_batch_that_two_replicas_ran_shows() -> None:
    a = Worker().epoch(1, resume=0).runs(range(1), 0, 1, 2)
    b = Worker().epoch(1, resume=0).runs(range(1), 2, 3)
    ledger = ledger_of(a, b)
    assert (ledger.samples_lost, ledger.samples_repeated) == (0, 3)
    assert ledger.problems == ["step 0: 0 micro-batches missing, 1 counted more than once"]


def test_a_step_that_was_skipped_shows() -> None:
    a = Worker().epoch(1, resume=0).runs(range(1), 0, 1, 2, 3).runs(range(2, 3), 0, 1, 2, 3)
    ledger = ledger_of(a)
    assert ledger.samples_lost == 12
    assert [s.step for s in ledger.steps] == [0, 2]


def test_a_replayed_step_counts_once() -> None:
    """Epoch 1 reduced step 1 and nobody committed it; epoch 2 ran it again."""
    a = Worker().epoch(1, resume=0).runs(range(1), 0, 1).reduces(1, 0, 1)
    b = Worker().epoch(1, resume=0).runs(range(1), 2, 3).reduces(1, 2, 3)
    a.epoch(2, resume=1).runs(range(1, 3), 0, 1, 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.is_sound
    assert [s.revision for s in ledger.steps] == [1, 2, 2]


def test_a_commit_by_one_that_died_with_it_is_no_commit() -> None:
    """``b`` applied step 1 and was killed; the others dropped it and ran it again."""
    a = Worker().epoch(1, resume=0).runs(range(1), 0, 1).reduces(1, 0, 1)
    b = Worker().epoch(1, resume=0).runs(range(2), 2, 3)
    a.epoch(2, resume=1).runs(range(1, 2), 0, 1, 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.is_sound
    assert [s.revision for s in ledger.steps] == [1, 2]


def test_a_rolled_forward_commit_belongs_to_the_epoch_that_reduced() -> None:
    """``a`` learnt while epoch 2 formed that step 1 was committed: it knows no loss."""
    a = Worker().epoch(1, resume=0).runs(range(1), 0, 1).reduces(1, 0, 1).commits(1, None)
    b = Worker().epoch(1, resume=0).runs(range(2), 2, 3)
    a.epoch(2, resume=2).runs(range(2, 3), 0, 1, 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.is_sound
    assert [(s.revision, s.loss) for s in ledger.steps] == [(1, 0.5), (1, 0.5), (2, 0.5)]


def test_a_step_committed_in_two_epochs_shows() -> None:
    """As after a fault in the agreement: epoch 2 resumed behind a step that was kept."""
    a = Worker().epoch(1, resume=0).runs(range(2), 0, 1, 2, 3)
    b = Worker().epoch(2, resume=2).runs(range(1, 2), 0, 1, 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.samples_repeated == 12


def test_rolled_back_steps_count_as_they_were_run_last() -> None:
    a = Worker().epoch(1, resume=0).runs(range(6), 0, 1, 2, 3)
    b = Worker().epoch(2, resume=3).runs(range(3, 8), 0, 1, 2, 3)
    ledger = ledger_of(a, b)
    assert ledger.is_sound
    assert [s.revision for s in ledger.steps] == [1, 1, 1, 2, 2, 2, 2, 2]
    assert ledger.samples_committed == 8 * 12


def test_two_rollbacks() -> None:
    a = Worker().epoch(1, resume=0).runs(range(6), 0, 1, 2, 3)
    b = Worker().epoch(3, resume=4).runs(range(4, 9), 0, 1, 2, 3)
    c = Worker().epoch(5, resume=2).runs(range(2, 7), 0, 1, 2, 3)
    ledger = ledger_of(a, b, c)
    assert ledger.is_sound
    assert [s.revision for s in ledger.steps] == [1, 1, 5, 5, 5, 5, 5]


def test_a_checkpoint_that_was_complete_only_after_its_line_was_left() -> None:
    """1 went on to step 14 and died; 2 went back to 7; then 1's checkpoint of step 14 showed up."""
    a = Worker().epoch(1, resume=0).runs(range(14), 0, 1, 2, 3)
    b = Worker().epoch(2, resume=7).runs(range(7, 9), 0, 1, 2, 3)
    c = Worker().epoch(3, resume=14).runs(range(14, 16), 0, 1, 2, 3)
    ledger = ledger_of(a, b, c)
    assert ledger.is_sound
    assert [s.revision for s in ledger.steps] == [1] * 14 + [3] * 2


def test_steps_that_no_line_has_show() -> None:
    a = Worker().epoch(1, resume=0).runs(range(3), 0, 1, 2, 3)
    b = Worker().epoch(2, resume=5).runs(range(5, 6), 0, 1, 2, 3)
    assert ledger_of(a, b).samples_lost == 2 * 12


def test_only_the_first_hundred_problems_are_put_in_words() -> None:
    a = Worker().epoch(1, resume=0).runs(range(150), 0, 1, 2)
    ledger = ledger_of(a)
    assert len(ledger.problems) == 100
    assert ledger.samples_lost == 150 * 3


def test_nothing_known_of_the_job() -> None:
    with pytest.raises(InputError, match="no worker ever started"):
        check([[]])


class TestFiles:
    def write(self, folder: Path, worker: Worker, name: str = "a/0") -> Path:
        journal = Journal(folder, name)
        for line in worker.lines:
            journal.write(line)
        journal.close()
        return folder / f"{name.replace('/', '.')}.jsonl"

    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        self.write(tmp_path / "ledger", Worker().epoch(1, resume=0).runs(range(2), 0, 1))
        self.write(tmp_path / "ledger", Worker().epoch(1, resume=0).runs(range(2), 2, 3), "b/0")
        ledger = read_ledger(tmp_path / "ledger")
        assert ledger.is_sound
        assert len(ledger.steps) == 2

    def test_a_restarted_worker_adds_to_its_journal(self, tmp_path: Path) -> None:
        self.write(tmp_path, Worker().epoch(1, resume=0).runs(range(1), 0, 1, 2, 3))
        self.write(tmp_path, Worker().epoch(2, resume=1).runs(range(1, 2), 0, 1, 2, 3))
        assert len(read_ledger(tmp_path).steps) == 2

    def test_a_cut_last_line_is_passed_over(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, Worker().epoch(1, resume=0).runs(range(2), 0, 1, 2, 3))
        path.write_bytes(path.read_bytes()[:-20])
        ledger = read_ledger(tmp_path)
        assert [s.step for s in ledger.steps] == [0]

    def test_a_damaged_line_is_named(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, Worker().epoch(1, resume=0).runs(range(2), 0, 1, 2, 3))
        lines = path.read_bytes().split(b"\n")
        lines[2] = b'{"kind": "reduce", "revision"'
        path.write_bytes(b"\n".join(lines))
        with pytest.raises(InputError, match=r"a\.0\.jsonl: line 3 is damaged"):
            read_ledger(tmp_path)

    def test_a_folder_without_a_ledger_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="holds no ledger; name the folder of a run"):
            read_ledger(tmp_path)

    def test_a_full_disk_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "a.0.jsonl").symlink_to("/dev/full")
        journal = Journal(tmp_path, "a/0")
        with pytest.raises(TrainingFailed, match=r"a\.0\.jsonl.*No space left.*free space"):
            journal.write(JOB)
        journal.close()

    def test_an_unwritable_folder_is_said(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(TrainingFailed, match="File exists; free space or name another"):
            Journal(tmp_path / "file", "a/0")
