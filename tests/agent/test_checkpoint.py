"""Checkpoints: complete or not there, and refused where they do not fit."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import shutil
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import parcae_agent.saver as saver_module
from parcae_agent import SGD, checkpoint
from parcae_agent.checkpoint import complete_steps, layer_file, prune, restore, write
from parcae_agent.layer_state import LayerState
from parcae_agent.memory import Memory
from parcae_agent.metrics.meter import Meter
from parcae_agent.metrics.page import Page, Slot
from parcae_agent.saver import Complete, Saver
from parcae_api.errors import InputError, TrainingFailed

CPU = torch.device("cpu")


def layer(index: int = 0, width: int = 4) -> LayerState:
    built = LayerState(index, nn.Linear(width, width), SGD(lr=0.1), CPU)
    built.initialize()
    return built


def states(*indices: int) -> dict[int, Tensor]:
    return {index: torch.full((2, 32), float(index)) for index in indices}


def test_a_checkpoint_is_complete_with_its_last_layer(tmp_path: Path) -> None:
    assert complete_steps(tmp_path / "missing", 3) == ()
    write(tmp_path, 5, states(0, 1))
    assert complete_steps(tmp_path, 3) == ()
    write(tmp_path, 5, states(2))
    write(tmp_path, 12, states(0, 1, 2))
    (tmp_path / "step-x").mkdir()
    assert complete_steps(tmp_path, 3) == (5, 12)


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    saved, back = layer(), layer()
    saved.flat.normal_()
    write(tmp_path, 3, checkpoint.snapshot([saved]))
    restore(tmp_path, 3, back)
    assert torch.equal(back.flat, saved.flat)
    assert back.parameters[0].data_ptr() == back.flat.data_ptr(), "the module sees other memory"


def test_a_snapshot_does_not_change_with_training() -> None:
    trained = layer()
    taken = checkpoint.snapshot([trained])[0]
    before = taken.clone()
    trained.flat.fill_(7)
    assert torch.equal(taken, before)


def test_a_state_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    write(tmp_path, 3, states(0))
    stamp = layer_file(tmp_path, 3, 0).stat().st_mtime_ns
    write(tmp_path, 3, states(0))
    assert layer_file(tmp_path, 3, 0).stat().st_mtime_ns == stamp


def _die_in_fsync(folder: Path) -> None:
    os.fsync = lambda fd: os.kill(os.getpid(), signal.SIGKILL)
    write(folder, 3, states(0))


def test_a_writer_killed_in_the_middle_leaves_no_complete_checkpoint(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["parcae_agent.preload"])
    process = context.Process(target=_die_in_fsync, args=(tmp_path,))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert complete_steps(tmp_path, 1) == ()
    write(tmp_path, 3, states(0))  # what it left behind is in nobody's way
    assert complete_steps(tmp_path, 1) == (3,)


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, 3, states(0))
    assert list((tmp_path / "step-000000003").iterdir()) == []


def test_old_checkpoints_are_pruned_and_unfinished_new_ones_kept(tmp_path: Path) -> None:
    for step in (1, 2, 4, 8):
        write(tmp_path, step, states(0, 1))
    write(tmp_path, 3, states(0))
    write(tmp_path, 9, states(0))
    prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "step-000000004",
        "step-000000008",
        "step-000000009",
    ]
    prune(tmp_path / "missing", 2)


def test_one_complete_checkpoint_takes_nothing_away(tmp_path: Path) -> None:
    """A worker that was cut off may finish it while the others still write an older step."""
    write(tmp_path, 14, states(0, 1))
    write(tmp_path, 13, states(0))
    prune(tmp_path, 2)
    assert layer_file(tmp_path, 13, 0).exists()


def test_a_write_goes_on_when_its_folder_is_pruned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, pruned = os.fsync, []

    def prune_first(fd: int) -> None:
        fsync(fd)
        if not pruned:
            pruned.append(fd)
            shutil.rmtree(tmp_path / "step-000000003")

    monkeypatch.setattr(os, "fsync", prune_first)
    write(tmp_path, 3, states(0))
    assert pruned
    assert complete_steps(tmp_path, 1) == (3,)


def test_a_write_into_a_folder_that_keeps_going_away_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: shutil.rmtree(tmp_path / "step-000000003"))
    with pytest.raises(FileNotFoundError):
        write(tmp_path, 3, states(0))


def test_another_shape_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 3, checkpoint.snapshot([layer(width=4)]))
    with pytest.raises(InputError, match=r"layer-00000.*holds \(2, 32\).*needs \(2, 80\).*empty"):
        restore(tmp_path, 3, layer(width=8))


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40])
def test_a_damaged_file_is_named(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, 3, states(0))
    layer_file(tmp_path, 3, 0).write_bytes(damage)
    with pytest.raises(InputError, match=r"is damaged.*delete .*step-000000003"):
        restore(tmp_path, 3, layer())


def test_digests_are_of_all_bytes_in_order() -> None:
    first, second = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0], [6.0]])
    model, state = checkpoint.digests([first, second])
    raw = [t.numpy().tobytes() for t in (first[0], second[0], first, second)]
    assert model == hashlib.sha256(raw[0] + raw[1]).hexdigest()
    assert state == hashlib.sha256(raw[2] + raw[3]).hexdigest()
    assert checkpoint.digests([second, first])[1] != state


class TestSaver:
    def memory(self, applied: int) -> Memory:
        return Memory(layers={0: layer()}, applied=applied)

    def test_writes_when_a_step_is_due_and_prunes(self, tmp_path: Path) -> None:
        saver = Saver(tmp_path, 5, 1)
        for applied in range(1, 31):
            memory = self.memory(applied)
            saver.after_step(memory)
            if saver._writing is not None:
                saver._writing.result()
        saver.close()
        assert complete_steps(tmp_path, 1) == (25, 30)

    def test_the_newest_complete_checkpoint_is_looked_for(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(saver_module, "_LOOK_S", 0.0)
        saver = Saver(tmp_path, 5, 2)  # of two layers: the other is another worker's
        saver.after_step(self.memory(5))

        def newest() -> Complete | None:
            saver.newest()
            saver._executor.submit(lambda: None).result()  # the look is done
            return saver._newest

        assert newest() is None
        write(tmp_path, 5, {1: torch.zeros(2, 32)})
        os.utime(layer_file(tmp_path, 5, 1), (3e9, 3e9))
        assert newest() == Complete(5, 3e9)
        write(tmp_path, 10, {1: torch.zeros(2, 32)})
        assert newest() == Complete(5, 3e9)  # that of step 10 lacks a layer
        saver.close()

    def test_the_folder_is_not_looked_at_all_the_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        saver, looks = Saver(tmp_path, 5, 1), list[Path]()
        monkeypatch.setattr(saver, "_look", looks.append)
        for _ in range(100):
            saver.newest()
        saver.close()
        assert looks == [tmp_path]

    def test_saving_for_good_waits_for_the_write_that_runs(self, tmp_path: Path) -> None:
        """Both may be due at the same step, and must not take each other's files away."""
        for applied in range(5, 100, 5):
            saver = Saver(tmp_path, 5, 1)
            memory = self.memory(applied)
            saver.after_step(memory)
            saver.save_now(memory)
            saver.close()
            assert load_file(layer_file(tmp_path, applied, 0))["state"].shape == (2, 32)

    def test_a_full_disk_ends_a_final_save_and_no_other(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "step-000000005").touch()  # where a folder must be made
        saver = Saver(tmp_path, 5, 1)
        memory = self.memory(5)
        saver.after_step(memory)
        with pytest.raises(TrainingFailed, match=r"state of step 5 cannot be written to .*free"):
            saver.save_now(memory)
        saver.close()
        assert "checkpoint of step 5 was not written" in caplog.text

    def test_what_is_written_and_what_is_not_is_counted(self, tmp_path: Path) -> None:
        (tmp_path / "step-000000010").touch()  # where a folder must be made
        page = Page.of(None)
        saver = Saver(tmp_path, 5, 1, Meter(page))
        for applied in (5, 10):
            saver.after_step(self.memory(applied))
            assert saver._writing is not None
            saver._writing.result()
        saver.save_now(self.memory(12))
        saver.close()
        numbers = page.read()
        assert (numbers[Slot.CHECKPOINTS], numbers[Slot.CHECKPOINT_FAILURES]) == (2, 1)
        assert numbers[Slot.CHECKPOINT_STEP] == 12
        assert numbers[Slot.CHECKPOINT_BYTES] == 2 * layer().nbytes
        assert numbers[Slot.CHECKPOINT_SECONDS] > 0

    def test_without_a_folder_nothing_is_written(self) -> None:
        saver = Saver(None, 1, 1)
        saver.after_step(self.memory(1))
        saver.save_now(self.memory(1))
        assert saver.newest() is None
        saver.close()
