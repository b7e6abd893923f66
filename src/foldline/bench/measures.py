"""The measures: each is a table with a description, columns, and a function that takes the figures.

The function gets a system and a setup. Sizes are characters / 4, times are processor time. A view that
exceeds its budget cannot be best.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from foldline.bench.corpus import RULES, DirtyTalk, Messages, Talk, context, planted
from foldline.bench.decision import compared, decided, request, tools
from foldline.bench.live import run_session, timed
from foldline.bench.public import BFCL, KIT, canaries, constraints, halves, survives
from foldline.bench.system import LiveSystem, System, clock, message_texts, size
from foldline.catalogue import Catalogue
from foldline.core.decide.price import cost
from foldline.core.lab.retention import score, scored_message
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import ViewState, native_items
from foldline.dialects import get
from foldline.lab.report import usages
from foldline.lab.scored_cuts import demands_at
from foldline.lab.sources import session_files
from foldline.lab.steps import steps
from foldline.transcripts import read

Figure = float | int | str | None
Figures = dict[str, Figure]

PRICED = "claude-sonnet-4-5"  # the model whose prices are used
BUDGETS = (0.1, 0.05)  # shares of a session that a fold may leave
PLACES = {"top": (0.0, 0.15), "middle": (0.42, 0.58)}  # where rules are planted
KIT_BUDGETS = (0.1, 0.2, 0.3)  # those of compaction-conformance-kit
ARGUMENT_BUDGETS = (0.2, 0.1)
CUTS = (0.5, 0.75)  # where a session is folded, to see what its rest needs
FULL_SIZES = (1_000, 10_000, 100_000)  # messages at which a turn is timed in a full run
TURNS = 20  # timed at each size
ASKED_EVERY = 1_000  # messages, while a session grows to a size
OVER = 1.1  # times its budget that a view may take: token counts differ a little


class BenchSetup(msgspec.Struct, frozen=True):
    """The sizes of a run; `seconds` is the time limit of one measure of one system."""

    seed: int = 7
    window: int = 32_000
    messages: int = 2_000  # of a dirty log; half as many of the session whose tokens are counted
    context: int = 100_000  # tokens of a session that is folded once
    contexts: int = 3
    sizes: tuple[int, ...] = FULL_SIZES[:2]
    sessions: tuple[str, ...] = ()
    model: str = ""  # for decisions
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
        """Return the texts of the view of one fold; none if it raises."""
        return message_texts(self.view(messages, budget))

    def view(self, messages: Messages, budget: int) -> Sequence[Any]:
        """Return the view of one fold; an empty one if it raises."""
        try:
            view = self._system.make(budget)(messages)
            self._ratios.append(sum(map(size, message_texts(view))) / budget)
        except Exception as error:
            self._raised.append(error)
            return ()
        return view

    @property
    def sizes(self) -> Figures:
        """The figures of `OF_FOLDS`; raises the system's error if no fold succeeded."""
        if not self._ratios and self._raised:
            raise self._raised[0]
        return {
            "view": statistics.fmean(self._ratios),
            "over": sum(ratio > OVER for ratio in self._ratios),
            "raised": len(self._raised),
        }


def tokens(messages: Messages) -> int:
    """Return the size of a session."""
    return sum(map(size, message_texts(messages)))


# ---- Valid


def valid(system: System, setup: BenchSetup) -> Figures:
    """Send a dirty log to a system."""
    result = run_session(system, DirtyTalk(setup.seed).messages(setup.messages), setup.window, setup.seconds)
    return {
        "requests": result.requests,
        "invalid": result.invalid,
        "raised": result.raised,
        "overflows": result.overflows,
        "left": result.left,
        "broken": ", ".join(rule for rule, _ in result.broken.most_common(3)),
        "note": result.note,
    }


# ---- Rules


def rules(system: System, setup: BenchSetup) -> Figures:
    """Plant rules in sessions, fold them, and look for the rules word for word."""
    folds, kept = Folds(system), dict[str, list[bool]]()
    for name, texts in (("own", RULES), ("public", constraints())):
        for number, messages in enumerate(setup.contexts_made() if texts else ()):
            sample = texts[number :: setup.contexts]
            for where, place in PLACES.items():
                full = planted(messages, sample, place)
                for share in BUDGETS:
                    view = plain("\n".join(folds(full, int(share * tokens(full)))))
                    kept_rules = [plain(rule) in view for rule in sample]
                    kept.setdefault(f"{name}_{where}_{share}", []).extend(kept_rules)
    return {**{name: statistics.fmean(kept_rules) for name, kept_rules in kept.items()}, **folds.sizes}


def plain(text: str) -> str:
    """Normalise text for comparisons: without line breaks and JSON escapes."""
    return " ".join(text.replace('\\"', '"').split())


# ---- Retention


def retention(system: System, setup: BenchSetup) -> Figures:
    """Cut sessions, fold what was said, and look for what the rest uses of it."""
    folds, shares = Folds(system), dict[str, list[float]]()
    decode = get("openai-chat").decode
    for messages in own(setup.sessions) if setup.sessions else setup.contexts_made():
        for needed in demands_at([scored_message(decode(message)) for message in messages], CUTS):
            past = messages[: needed.message]
            for share in BUDGETS:
                scores = score(needed.wanted, "\n".join(folds(past, int(share * tokens(past)))))
                for name in ("handle", "far"):
                    if (value := getattr(scores, name)) is not None:
                        shares.setdefault(f"{name}_{share}", []).append(value)
    figures: Figures = {name: statistics.fmean(values) for name, values in shares.items()}
    cuts = len(shares.get(f"handle_{BUDGETS[0]}", ()))
    return {**figures, **folds.sizes, "cuts": cuts} if shares else {}


def own(names: Sequence[str]) -> Iterable[Messages]:
    """Yield the sessions of files, as messages of Chat Completions."""
    for file in session_files(names):
        entries = [step for step in steps(read(file)) if isinstance(step, Said)]
        view = ViewState(entries, counter=OFFLINE).view()
        yield get("openai-chat").render(native_items(view), whole=True).messages


# ---- Canaries


def kept_canaries(system: System, setup: BenchSetup) -> Figures:
    """Fold the kit's session, and have the kit look for its canaries."""
    del setup  # the kit's session is fixed
    folds, (messages, canary_list) = Folds(system), canaries()
    figures: Figures = {}
    for share in KIT_BUDGETS:
        view = "\n".join(folds(messages, int(share * tokens(messages))))
        figures[f"kept_{share}"] = sum(survives(canary, view) for canary in canary_list) / len(canary_list)
    return {**figures, **folds.sizes}


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


# ---- Decision


def decision(system: System, setup: BenchSetup) -> Figures:
    """Let a model choose the next call from folded contexts, and compare it with the recorded call."""
    folds = Folds(system)
    asked = [
        (call, request(folds.view(past, int(BUDGETS[0] * tokens(past))), system.dialect, tools(messages)))
        for messages in own(setup.sessions)
        for past, call in decided(messages)
    ]
    return {**compared(setup.model, asked), **folds.sizes} if asked else {}


# ---- Cost


def costs(system: System, setup: BenchSetup) -> Figures:
    """Time turns at several sizes and one fold, and count what a session sends."""
    log = Talk(setup.seed).messages(setup.messages // 2)
    result = run_session(system, log, setup.window, setup.seconds, judged=False)
    whole = next(iter(setup.contexts_made()))
    fold = system.make(tokens(whole) // 10)
    price = Catalogue().look_up(PRICED).price
    _, cached = usages(result.tokens, result.cached, 0)
    return {
        "tokens": result.tokens / 1e6,
        "cached": result.cached / max(1, result.tokens),
        "usd": cost(cached, price) if price else None,
        "overflows": result.overflows,
        "raised": result.raised,
        "fold": timed(fold, whole),
        **turns(system, setup),
        "note": result.note,
    }


def turns(system: System, setup: BenchSetup) -> Figures:
    """Return the milliseconds of a turn at each size: a prompt, a view, a reply."""
    talk, live, done, figures = Talk(setup.seed), system.opened(setup.window), 0, Figures()
    until = clock() + setup.seconds / 3
    try:
        for messages in setup.sizes:
            while done < messages and clock() < until:
                some = min(ASKED_EVERY, messages - done)
                live.say(*(one for _ in range(some // 2) for one in (talk.prompt(), talk.reply())))
                live.view()
                done += some
            taken = [_turn(live, talk) for _ in range(TURNS) if clock() < until]
            figures[f"turn_{messages}"] = statistics.median(taken) * 1e3 if taken else None
            done += 2 * len(taken)
    finally:
        live.close()
    return figures


def _turn(live: LiveSystem, talk: Talk) -> float:
    prompt, reply = talk.prompt(), talk.reply()
    return timed(live.say, prompt) + timed(live.view) + timed(live.say, reply)


# ---- the tables


class Column(msgspec.Struct, frozen=True):
    """A figure of a measure: its key and title, whether more or less is better, and its format."""

    key: str
    title: str
    better: Literal["more", "less", ""] = ""
    form: Literal["share", "count", "number", "text"] = "count"


class Measure(msgspec.Struct, frozen=True):
    """One table. `reads`: texts are compared, so systems whose summaries a script writes are left out.

    `asks`: a model is called, so the measure needs a named model.
    """

    name: str
    about: str
    columns: tuple[Column, ...]
    take: Callable[[System, BenchSetup], Figures]
    reads: bool = False
    needs: str = ""  # a package
    asks: bool = False


OF_FOLDS = (
    Column("view", "view / budget", form="share"),
    Column("over", "over budget"),  # folds whose view is larger than asked for
    Column("raised", "raised"),
)


def _by_budget(title: str, key: str, budgets: tuple[float, ...] = BUDGETS) -> tuple[Column, ...]:
    return tuple(Column(f"{key}_{share}", f"{title}, {share:.0%}", "more", "share") for share in budgets)


def _places(name: str, title: str) -> tuple[Column, ...]:
    return tuple(one for where in PLACES for one in _by_budget(f"{title} {where}", f"{name}_{where}"))


MEASURES: Mapping[str, Measure] = {
    one.name: one
    for one in (
        Measure(
            "valid",
            "A dirty log, said message by message: calls cut short, several at once, late and doubled "
            "results, ids that come again. Invalid: views that a strict provider refuses, and why. "
            "History left: the share of user messages and results that can still be read at the end; "
            "empty where the caller keeps them.",
            (
                Column("requests", "requests"),
                Column("invalid", "invalid", "less"),
                Column("overflows", "overflows", "less"),
                Column("raised", "raised", "less"),
                Column("left", "history left", "more", "share"),
                Column("broken", "why invalid", form="text"),
            ),
            valid,
        ),
        Measure(
            "rules",
            "15 rules of a user, each in a message of its own at the top or in the middle of a session, "
            "which is folded to a tenth or a twentieth: the share that the view has word for word. "
            "Public: COMPINT's constraints, where its package `conpact` is installed.",
            (*_places("own", "ours,"), *_places("public", "public,"), *OF_FOLDS),
            rules,
            reads=True,
        ),
        Measure(
            "retention",
            "Sessions are cut at a half and at three quarters, and folded to a tenth or a twentieth: "
            "the share of the names that later calls use and only the past had told, which the view "
            "has. Far: those last named long ago.",
            (
                *_by_budget("needed", "handle"),
                *_by_budget("far", "far"),
                Column("cuts", "cuts"),
                *OF_FOLDS,
            ),
            retention,
            reads=True,
        ),
        Measure(
            "canaries",
            "compaction-conformance-kit: its session of some 2,000 tokens with 20 things to keep, "
            "folded to its own budgets; its probe says what is left.",
            (*_by_budget("kept", "kept", KIT_BUDGETS), *OF_FOLDS),
            kept_canaries,
            reads=True,
            needs=KIT,
        ),
        Measure(
            "arguments",
            "BFCL v4, multi_turn_long_context: the first halves of 20 tasks make a session, which is "
            "folded to a fifth or a tenth: the share of those arguments of the other halves' gold calls "
            "which only the first had told, that the view has.",
            (*_by_budget("kept", "kept", ARGUMENT_BUDGETS), Column("arguments", "arguments"), *OF_FOLDS),
            arguments,
            reads=True,
            needs=BFCL,
        ),
        Measure(
            "decision",
            "Your sessions, folded to a tenth before up to ten calls of their second halves: how often a "
            "model then calls the tool that is recorded, and with the same first argument. What it does with "
            "the whole context says the row `everything`. Refused: requests that its server did not take.",
            (
                Column("tool", "same tool", "more", "share"),
                Column("argument", "same argument", "more", "share"),
                Column("refused", "refused"),
                Column("decisions", "decisions"),
                *OF_FOLDS,
            ),
            decision,
            reads=True,
            asks=True,
        ),
        Measure(
            "cost",
            "Milliseconds of the processor for a turn in a session of so many messages; seconds of one "
            "fold; the tokens that a whole session sends, how many of them a provider's cache has, and "
            "their price at those of claude-sonnet-4-5.",
            (
                *(Column(f"turn_{n}", f"ms a turn, {n:,}", "less", "number") for n in FULL_SIZES),
                Column("fold", "s a fold", "less", "number"),
                Column("tokens", "M tokens", form="number"),
                Column("cached", "cached", "more", "share"),
                Column("usd", "USD", "less", "number"),
                Column("overflows", "overflows"),
                Column("raised", "raised"),
            ),
            costs,
        ),
    )
}
