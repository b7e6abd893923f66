"""The thread of a store: in order, answered in the loop that asked, gone when nobody wants it."""

import asyncio
import gc
import threading

import pytest

from foldline.stores.worker import Worker


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
    thread.join(60)
    assert not thread.is_alive()


def test_two_threads_that_ask_first_start_one_thread():
    """With two, transactions would mix on one connection, and `stop` would wait for ever for the second."""
    others: list[threading.Thread] = []

    class Name(str):
        """The name of a thread, which another thread asks for while it is made."""

        __slots__ = ()

        def __str__(self) -> str:
            if not others:
                others.append(threading.Thread(target=worker.submit, args=(done.set,)))
                others[0].start()
                others[0].join(0.2)  # it ends at once, or waits for this thread
            return "first"

    done, worker = threading.Event(), Worker(Name("first"))
    worker.submit(lambda: None)
    others[0].join()
    assert done.wait(30)
    assert len(alive("first")) == 1
    worker.stop(wait=True)
