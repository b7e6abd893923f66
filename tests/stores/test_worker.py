"""The thread of a store: in order, answered in the loop that asked, gone when nobody wants it."""

import asyncio
import gc
import threading

import pytest

from foldline.stores.worker import Occupied, Worker


def alive(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]


async def test_work_is_done_in_the_order_asked_and_outside_the_loop():
    worker, seen = Worker("order"), []
    answers = [
        worker.ask(lambda n=n: (seen.append(n), threading.current_thread().name)[1]) for n in range(50)
    ]
    assert set(await asyncio.gather(*answers)) == {"order"}
    assert seen == list(range(50))
    worker.stop(wait=True)
    assert not alive("order")


async def test_what_work_raises_comes_to_the_one_who_asked_and_the_next_work_is_done():
    worker = Worker("raises")
    with pytest.raises(ZeroDivisionError):
        await worker.ask(lambda: 1 // 0)
    assert await worker.ask(lambda: 7) == 7
    worker.stop(wait=True)


async def test_work_that_was_not_begun_is_left_out_when_it_is_cancelled():
    worker, begin, seen = Worker("cancel"), threading.Event(), []
    first = worker.ask(begin.wait)
    second, third = worker.ask(lambda: seen.append(2)), worker.ask(lambda: seen.append(3))
    second.cancel()
    begin.set()
    await first
    await third
    assert seen == [3]
    worker.stop(wait=True)


async def test_work_that_was_begun_is_finished_though_nobody_waits():
    worker, begun, go, seen = Worker("begun"), threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go.wait()
        seen.append("done")

    answer = worker.ask(work)
    begun.wait()
    answer.cancel()
    go.set()
    worker.stop(wait=True)
    assert seen == ["done"]


def test_an_answer_for_a_loop_that_is_closed_is_let_go():
    worker, go = Worker("closed"), threading.Event()

    async def ask() -> None:
        worker.ask(go.wait)

    asyncio.run(ask())
    go.set()
    assert asyncio.run(later(worker)) == "still here"
    worker.stop(wait=True)


async def later(worker: Worker) -> str:
    return await worker.ask(lambda: "still here")


def test_the_thread_ends_when_nobody_has_the_worker_any_more():
    worker = Worker("forgotten")
    asyncio.run(later(worker))
    (thread,) = alive("forgotten")
    del worker
    gc.collect()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_worker_that_was_never_asked_can_be_stopped():
    worker = Worker("never")
    worker.stop(wait=True)
    assert not alive("never")


async def test_work_is_done_in_the_own_thread_while_the_worker_has_nothing_to_do():
    worker = Worker("beside")
    assert worker.at_once(threading.current_thread) is threading.current_thread()
    with pytest.raises(ZeroDivisionError):
        worker.at_once(lambda: 1 // 0)
    assert worker.at_once(lambda: 7) == 7  # and it is free again
    assert await worker.ask(lambda: 8) == 8
    worker.stop(wait=True)


async def test_work_is_not_done_at_once_while_the_worker_is_at_another_or_another_waits():
    worker, begun, go = Worker("occupied"), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        go.wait()

    answers = [worker.ask(first), worker.ask(lambda: None)]
    begun.wait()
    with pytest.raises(Occupied):
        worker.at_once(lambda: pytest.fail("two at a time"))
    go.set()
    await asyncio.gather(*answers)
    while True:  # the answer comes a moment before the thread is free
        try:
            assert worker.at_once(lambda: 7) == 7
            break
        except Occupied:
            await asyncio.sleep(0.001)
    worker.stop(wait=True)


async def test_the_thread_waits_for_work_done_at_once():
    worker, seen = Worker("waits"), []

    def work() -> None:
        worker.submit(lambda: seen.append("thread"))
        assert not seen
        seen.append("here")

    worker.at_once(work)
    await worker.ask(lambda: None)
    assert seen == ["here", "thread"]
    worker.stop(wait=True)
