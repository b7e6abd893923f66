"""Which language a text is written in, where that is beyond doubt.

Letters decide between scripts; between languages that share the Latin one, their commonest short words. A
text that is short, mixed or between two languages has none: nothing is decided on a guess.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable
from typing import Final

import msgspec

from foldline.core.ledger.text.origin import own
from foldline.core.log.entries import Said

LEAST_LETTERS: Final = 24  # of a script that is not Latin; files and tools have Latin names anyway
SCRIPT_SHARE: Final = 0.3
LEAST_HITS: Final = 6  # common words that a text must hold
AHEAD: Final = 2.5  # times as many as of the next language
READ: Final = 20_000  # characters that are looked at
READ_EACH: Final = 2_000  # characters at either end of one message
USED_LETTERS, USED_HITS = 3, 3  # letters of a script, or common words, from which a language was used at all
CLEARER: Final = 1.5  # times as many common words as of the next language, in one sentence
MORE_MESSAGES: Final = 1.5  # times as many messages as hold the next language

_CODE: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|\S*[/\\_.]\S*\w|^[ \t]*#[^\n]*$", re.DOTALL | re.MULTILINE
)
_SENTENCE_END: Final = re.compile(r"[.!?:;]\s|\n")
_WORD: Final = re.compile(r"[^\W\d_]+")
_SCRIPTS: Final = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af\u1100-\u11ff]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Russian": re.compile(r"[\u0400-\u04ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Hindi": re.compile(r"[\u0900-\u097f]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
}
# A script that several languages share stands for the commonest of them: both sides get the same name.
_KANA_SHARE: Final = 0.1  # of it in a text with Chinese characters, from which the text is Japanese
_COMMON: Final = {
    language: frozenset(words.split())
    for language, words in {
        "English": "the and of to is are was were that this it for with not be have has on as at by "
        "from which "
        "should must never please you your they their there when what will would been into",
        "German": "der die das und ist nicht ein eine einen dem den des mit von zu auf für sich "
        "wird wurde werden "
        "ich du wir sie es auch als noch nach bei oder aber muss soll bitte wenn dass wie nur immer nie",
        "French": "le la les des et est une un du que qui dans pour pas ne sur avec ce cette sont "
        "il elle nous "
        "vous je au aux par plus doit être jamais toujours ou mais été fait",
        "Spanish": "el los las y es una un del que en para no con por se lo su como más pero debe "
        "está son al "
        "nunca siempre fue hay este esta usuario",
        "Italian": "il lo gli che di e è una un del della per non con sono nel alla come più ma "
        "deve questo questa "
        "anche stato sempre mai dei delle ho",
        "Portuguese": "o os as e é uma um do da que em para não com por se na no como mais mas deve "
        "está são ao "
        "nunca sempre foi este esta você",
        "Dutch": "de het een en van is niet dat die in te op voor met zijn er aan om ook als maar "
        "naar wordt moet "
        "nooit altijd bij deze dit ik je wij",
        "Polish": "i w nie na się jest do że z to jak o po co tak ale za od przez dla czy być są "
        "musi nigdy zawsze",
        "Swedish": "och att det som en ett är på för med inte av till den har de om jag kan ska "
        "måste aldrig alltid",
        "Turkish": "ve bir bu için ile değil da de ne var olarak gibi daha çok ama her zaman asla olan sonra",
    }.items()
}  # fmt: skip


def language_of(text: str) -> str:
    """Return the English name of the language that a text is written in; "" where that is in doubt.

    Code, paths, links and headings are left out.
    """
    prose = _CODE.sub(" ", text[:READ])
    return _by_script(prose) or _by_words(prose)


class Spoken(msgspec.Struct, frozen=True):
    """The languages that somebody wrote in: the `main` one, "" where that is in doubt, and `every` one."""

    main: str = ""
    every: tuple[str, ...] = ()


def spoken_by_user(entries: Iterable[Said], earlier: Iterable[str] = ()) -> Spoken:
    """Return the languages of what the user wrote in these entries, and in texts from `earlier` ones."""
    said: list[str] = []
    size = 0
    for entry in reversed(list(entries)):
        text = _ends("\n".join(own(entry.message)))
        said.append(text)
        size += len(text)
        if size >= READ:
            break
    return spoken_in([*said, *earlier])


def spoken_in(texts: Iterable[str]) -> Spoken:
    """Return the languages of several messages, each judged sentence by sentence.

    What is pasted into a message may be longer than what is typed around it. So the main language is the one
    that most messages hold, not the one with most words.
    """
    evidence, messages = Tally[str](), Tally[str]()
    for text in texts:
        found = _evidence(_CODE.sub(" ", text))
        evidence.update(found)
        messages.update(found.keys())
    ranked = [item for item in messages.most_common() if evidence[item[0]] >= _least_used(item[0])]
    if not ranked:
        return Spoken()
    name, most = ranked[0]
    second = ranked[1][1] if len(ranked) > 1 else 0
    least = LEAST_LETTERS if name in _SCRIPTS else LEAST_HITS
    sure = evidence[name] >= least and most >= MORE_MESSAGES * second
    return Spoken(name if sure else "", tuple(language for language, _ in ranked))


def _ends(text: str) -> str:
    """Return the beginning and the end of a long message: what is pasted stands between them, or after."""
    return text if len(text) <= 2 * READ_EACH else f"{text[:READ_EACH]}\n{text[-READ_EACH:]}"


def _least_used(language: str) -> int:
    return USED_LETTERS if language in _SCRIPTS else USED_HITS


def _evidence(prose: str) -> Tally[str]:
    """Count the letters of each script in a text, and the common words of each Latin language.

    A sentence counts for the one Latin language that is clearly ahead in it.
    """
    found = +_letters(prose)
    for sentence in _SENTENCE_END.split(prose):
        (name, most), (_, second) = _hits(sentence).most_common(2)
        if most >= 2 and most >= CLEARER * second:
            found[name] += most
    return found


def _by_script(prose: str) -> str:
    letters = sum(map(len, _WORD.findall(prose)))
    name, most = max(_letters(prose).items(), key=lambda item: item[1])
    return name if most >= LEAST_LETTERS and most >= SCRIPT_SHARE * letters else ""


def _letters(prose: str) -> Tally[str]:
    """Count the letters of each script; Chinese characters count as Japanese beside enough kana."""
    counts = Tally({name: len(script.findall(prose)) for name, script in _SCRIPTS.items()})
    if counts["Japanese"] >= _KANA_SHARE * (counts["Japanese"] + counts["Chinese"]):
        counts["Japanese"], counts["Chinese"] = counts["Japanese"] + counts["Chinese"], 0
    return counts


def _by_words(prose: str) -> str:
    (name, most), (_, second) = _hits(prose).most_common(2)
    return name if most >= LEAST_HITS and most >= AHEAD * second else ""


def _hits(prose: str) -> Tally[str]:
    """Count the common words of each Latin language."""
    said = Tally(word.casefold() for word in _WORD.findall(prose))
    return Tally({name: sum(said[word] for word in words) for name, words in _COMMON.items()})
