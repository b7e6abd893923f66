"""How it is measured: each function takes a system and a setup, and returns figures.

Sizes are characters / 4, times are those of the processor. A view that exceeds its budget wins nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Sequence

import msgspec

from foldline.bench.corpus import RULES, DirtyTalk, Messages, Talk, context, planted
from foldline.bench.public import canaries, constraints, halves, survives
from foldline.bench.running import run, timed
from foldline.bench.system import LiveSystem, System, said, size
from foldline.catalogue import Catalogue
from foldline.core.lab.retention import cut_at, demand, score, spoken
from foldline.core.log.entries import Said
from foldline.core.measure.price import cost
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState, native_items
from foldline.dialects import get
from foldline.lab.report import usages
from foldline.lab.scored_cuts import common_names
from foldline.lab.sources import session_files
from foldline.lab.steps import steps
from foldline.transcripts import read

Figure = float | int | str | None
Figures = dict[str, Figure]

PRICED = "claude-sonnet-4-5"  # whose prices the tokens of a session are told in
BUDGETS = (0.1, 0.05)  # shares of a session that a fold may leave
PLACES = {"top": (0.0, 0.15), "middle": (0.42, 0.58)}  # where rules are planted
KIT_BUDGETS = (0.1, 0.2, 0.3)  # those of compaction-conformance-kit
ARGUMENT_BUDGETS = (0.2, 0.1)
CUTS = (0.5, 0.75)  # where a session is folded, to see what its rest needs
FULL_SIZES = (1_000, 10_000, 100_000)  # messages at which a turn is timed in a full run
TURNS = 20  # timed at each size
ASKED_EVERY = 1_000  # messages, while a session grows to a size
OVER = 1.1  # times its budget that a view may have: everybody counts tokens a little differently


class BenchSetup(msgspec.Struct, frozen=True):
    """How large everything is; `seconds` is what one measure of one system may take."""

    seed: int = 7
    window: int = 32_000
    messages: int = 2_000  # of a dirty log; half as many of the session whose tokens are counted
    context: int = 100_000  # tokens of a session that is folded once
    contexts: int = 3
    sizes: tuple[int, ...] = FULL_SIZES[:2]
    sessions: tuple[str, ...] = ()
    seconds: float = 120.0

    def contexts_made(self) -> Iterable[Messages]:
        """Yield the sessions to be folded once."""
        return (context(self.context, self.seed + number) for number in range(self.contexts))


class Folds:
    """The folds of one measure, and how large their views were."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._ratios: list[float] = []
        self._raised: list[Exception] = []  # a fold that raises keeps nothing

    def __call__(self, messages: Messages, budget: int) -> list[str]:
        """Return the texts of the view of one fold; none where it raises."""
        try:
            view = said(self._system.make(budget)(messages))
        except Exception as error:
            self._raised.append(error)
            return []
        self._ratios.append(sum(map(size, view)) / budget)
        return view

    @property
    def sizes(self) -> Figures:
        """The figures of `OF_FOLDS`; raises what the system raises where it never folds."""
        if not self._ratios and self._raised:
            raise self._raised[0]
        return {
            "view": statistics.fmean(self._ratios),
            "over": sum(ratio > OVER for ratio in self._ratios),
            "raised": len(self._raised),
        }


def tokens(messages: Messages) -> int:
    """Return the size of a session."""
    return sum(map(size, said(messages)))


# ---- Valid


def valid(system: System, setup: BenchSetup) -> Figures:
    """Say a dirty log to a system."""
    found = run(system, DirtyTalk(setup.seed).messages(setup.messages), setup.window, setup.seconds)
    return {
        "requests": found.requests,
        "invalid": found.invalid,
        "raised": found.raised,
        "overflows": found.overflows,
        "left": found.left,
        "broken": ", ".join(rule for rule, _ in found.broken.most_common(3)),
        "note": found.note,
    }


# ---- Rules


def rules(system: System, setup: BenchSetup) -> Figures:
    """Plant rules in sessions, fold them, and look for the rules word for word."""
    folds, kept = Folds(system), dict[str, list[bool]]()
    for name, known in (("own", RULES), ("public", constraints())):
        for number, messages in enumerate(setup.contexts_made() if known else ()):
            some = known[number :: setup.contexts]
            for where, place in PLACES.items():
                full = planted(messages, some, place)
                for share in BUDGETS:
                    view = plain("\n".join(folds(full, int(share * tokens(full)))))
                    found = [plain(rule) in view for rule in some]
                    kept.setdefault(f"{name}_{where}_{share}", []).extend(found)
    return {**{name: statistics.fmean(found) for name, found in kept.items()}, **folds.sizes}


def plain(text: str) -> str:
    """Return text as it is compared: without the breaks of lines, and without what JSON escapes."""
    return " ".join(text.replace('\\"', '"').split())


# ---- Retention


def retention(system: System, setup: BenchSetup) -> Figures:
    """Cut sessions, fold what was said, and look for what the rest uses of it."""
    folds, found = Folds(system), dict[str, list[float]]()
    decode = get("openai-chat").decode
    for messages in own(setup.sessions) if setup.sessions else setup.contexts_made():
        scored = [spoken(decode(message)) for message in messages]
        for at in sorted({at for share in CUTS if (at := cut_at(scored, share))}):
            wanted = demand(scored[:at], scored[at:], common_names())
            for share in BUDGETS if wanted.telling else ():
                view = "\n".join(folds(messages[:at], int(share * tokens(messages[:at]))))
                scores = score(wanted, view)
                for name in ("handle", "far"):
                    if (value := getattr(scores, name)) is not None:
                        found.setdefault(f"{name}_{share}", []).append(value)
    figures: Figures = {name: statistics.fmean(values) for name, values in found.items()}
    return {**figures, **folds.sizes, "cuts": len(found.get(f"handle_{BUDGETS[0]}", ()))} if found else {}


def own(names: Sequence[str]) -> Iterable[Messages]:
    """Yield the sessions of files, as messages of Chat Completions."""
    for file in session_files(names):
        entries = [step for step in steps(read(file), OFFLINE) if isinstance(step, Said)]
        view = ViewState(entries, counter=OFFLINE).view()
        yield get("openai-chat").render(native_items(view), whole=True).messages


# ---- Canaries


def kept_canaries(system: System, setup: BenchSetup) -> Figures:
    """Fold the kit's session, and have the kit look for its canaries."""
    del setup  # it is what it is
    folds, (messages, known) = Folds(system), canaries()
    found: Figures = {}
    for share in KIT_BUDGETS:
        view = "\n".join(folds(messages, int(share * tokens(messages))))
        found[f"kept_{share}"] = sum(survives(one, view) for one in known) / len(known)
    return {**found, **folds.sizes}


# ---- Arguments


def arguments(system: System, setup: BenchSetup) -> Figures:
    """Fold BFCL's tasks half-way, and look for the arguments that the other halves take from the first."""
    del setup
    folds, kept = Folds(system), dict[str, list[bool]]()
    for half in halves():
        for share in ARGUMENT_BUDGETS:
            view = "\n".join(folds(half.past, int(share * tokens(half.past)))).replace('\\"', '"')
            kept.setdefault(f"kept_{share}", []).extend(one in view for one in half.needed)
    figures: Figures = {name: statistics.fmean(found) for name, found in kept.items()}
    return {**figures, **folds.sizes, "arguments": len(next(iter(kept.values())))}


# ---- Cost


def costs(system: System, setup: BenchSetup) -> Figures:
    """Time turns at several sizes and one fold, and count what a session sends."""
    log = Talk(setup.seed).messages(setup.messages // 2)
    found = run(system, log, setup.window, setup.seconds, judged=False)
    whole = next(iter(setup.contexts_made()))
    fold = system.make(tokens(whole) // 10)
    price = Catalogue().look_up(PRICED).price
    _, cached = usages(found.tokens, found.cached, 0)
    return {
        "tokens": found.tokens / 1e6,
        "cached": found.cached / max(1, found.tokens),
        "usd": cost(cached, price) if price else None,
        "overflows": found.overflows,
        "fold": timed(fold, whole),
        **turns(system, setup),
        "note": found.note,
    }


def turns(system: System, setup: BenchSetup) -> Figures:
    """Return the milliseconds of a turn at each size: a prompt, a view, a reply."""
    talk, live, done, figures = Talk(setup.seed), system.opened(setup.window), 0, Figures()
    until = time.process_time() + setup.seconds / 3
    try:
        for messages in setup.sizes:
            while done < messages and time.process_time() < until:
                some = min(ASKED_EVERY, messages - done)
                live.say(*(one for _ in range(some // 2) for one in (talk.prompt(), talk.reply())))
                live.view()
                done += some
            taken = [_turn(live, talk) for _ in range(TURNS) if time.process_time() < until]
            figures[f"turn_{messages}"] = statistics.median(taken) * 1e3 if taken else None
            done += 2 * len(taken)
    finally:
        live.close()
    return figures


def _turn(live: LiveSystem, talk: Talk) -> float:
    prompt, reply = talk.prompt(), talk.reply()
    return timed(live.say, prompt) + timed(live.view) + timed(live.say, reply)
