"""The wire: every operation on process groups, waited for so that a broken epoch ends the wait.

gloo forgets an operation whose bytes are just being written or read when its connection breaks:
the queued ones are told, the one in hand is not, and whoever waits for it waits until the group's
timeout though the sockets are long shut. So the main thread never waits in gloo itself; a
helper does. One that does not come back from a broken epoch is left behind with all that it
holds, ends at that timeout, and is replaced. Handing over costs some 10 µs per operation.

NCCL's operations return at once and its abort wakes everything: there the calls are direct.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, TypeVar, cast

import torch.distributed as dist
from torch import Tensor

OPERATION_TIMEOUT = timedelta(minutes=30)
"""A last resort; peers that die are noticed by the breaker long before."""
T = TypeVar("T")
_Answer = SimpleQueue[tuple[Any, BaseException | None]]
_CUT = object()


class Wire:
    """Operations of the current epoch, for the worker's main thread."""

    def __init__(self, *, direct: bool) -> None:
        """``direct`` for backends whose operations never block the calling thread."""
        self._direct = direct
        self._lock = threading.Lock()
        self._is_cut = False
        self._waiting: _Answer | None = None
        self._helper: _Helper | None = None

    def open(self) -> None:
        """An epoch begins."""
        with self._lock:
            self._is_cut = False

    def cut(self) -> None:
        """End the wait that is on, and refuse every later one of this epoch. From any thread."""
        with self._lock:
            self._is_cut = True
            if self._waiting is not None:
                self._waiting.put((_CUT, None))

    def call(self, blocking: Callable[[], T]) -> T:
        """Call something that may block and changes nothing but what it returns or fills.

        Raises:
            ConnectionError: the epoch was broken, and it did not end.
        """
        if self._direct:
            return blocking()
        answer: _Answer = SimpleQueue()
        with self._lock:
            if self._is_cut:
                raise ConnectionError("the epoch was broken")
            self._waiting = answer
            self._helper = self._helper or _Helper()
        self._helper.do(blocking, answer)
        result, error = answer.get()
        with self._lock:
            self._waiting = None
        if result is _CUT:
            self._helper.leave()
            self._helper = None
            raise ConnectionError("the epoch was broken; an operation of it never ended")
        if error is not None:
            raise error
        return cast(T, result)

    def all_reduce(self, tensor: Tensor, group: dist.ProcessGroup | None = None) -> None:
        """Sum in place; over everyone if no group is given."""
        self.call(lambda: dist.all_reduce(tensor, group=group))

    def all_gather(self, output: Tensor, tensor: Tensor, group: dist.ProcessGroup) -> None:
        """Everyone's tensor, one after the other."""
        self.call(lambda: dist.all_gather_into_tensor(output, tensor, group=group))

    def all_to_all(
        self,
        output: Tensor,
        tensor: Tensor,
        output_sizes: list[int],
        input_sizes: list[int],
        group: dist.ProcessGroup,
    ) -> None:
        """Send every member its part of ``tensor``."""
        self.call(
            lambda: dist.all_to_all_single(output, tensor, output_sizes, input_sizes, group=group)
        )

    def gather_objects(self, mine: T, size: int) -> list[T]:
        """Everyone's object, in rank order."""
        found: list[Any] = [None] * size
        self.call(lambda: dist.all_gather_object(found, mine))
        return found

    def exchange(self, operations: Sequence[dist.P2POp]) -> None:
        """Send and receive, all at once."""
        if not operations:
            return
        works = dist.batch_isend_irecv(list(operations))
        self.call(lambda: [work.wait(OPERATION_TIMEOUT) for work in works])

    def watched(self, operations: list[dist.P2POp]) -> list[dist.P2POp]:
        """Make operations that ``torch.distributed.pipelining`` starts and waits for end, too."""
        if not self._direct:
            for operation in operations:
                # Nothing that torch does with its own kind of work is done to these.
                operation.op = cast(Any, _starter(operation, self))
        return operations


class _Watched:
    """A started operation with the one method that a schedule calls."""

    def __init__(self, work: dist.Work, wire: Wire) -> None:
        self._work = work
        self._wire = wire

    def wait(self) -> None:
        self._wire.call(lambda: self._work.wait(OPERATION_TIMEOUT))


def _starter(operation: dist.P2POp, wire: Wire) -> Callable[..., _Watched]:
    """What replaces ``isend`` or ``irecv`` in an operation; it knows its arguments already."""
    start: Any = operation.op
    peer = {"group_dst" if start is dist.isend else "group_src": operation.group_peer}

    def begin(*_: object, **__: object) -> _Watched:
        work = start(operation.tensor, group=operation.group, tag=operation.tag, **peer)
        return _Watched(work, wire)

    return begin


class _Helper:
    """A thread that waits for one operation after the other."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Callable[[], object], _Answer] | None] = SimpleQueue()
        threading.Thread(target=self._run, name="parcae-wire", daemon=True).start()

    def do(self, call: Callable[[], object], answer: _Answer) -> None:
        """Call, and put what comes of it into ``answer``."""
        self._calls.put((call, answer))

    def leave(self) -> None:
        """End after what is being waited for."""
        self._calls.put(None)

    def _run(self) -> None:
        while (request := self._calls.get()) is not None:
            call, answer = request
            try:
                answer.put((call(), None))
            except BaseException as error:
                answer.put((None, error))
            del request, call, answer  # hold nothing of an epoch while idle
