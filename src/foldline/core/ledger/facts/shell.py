"""Shell commands into steps, and what the steps do to files. Tolerant: no input makes it raise."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import msgspec

from foldline.core.ledger.text.sentences import word_set

_SCANNED = 20_000
"""Characters of one command that are read; a longer one is data."""
_TOKEN = re.compile(
    r"(?P<space>[ \t\r]+|\\\n)|(?P<comment>(?<![^\s;&|])#[^\n]*)"
    r"|(?P<heredoc>\d?<<-?\s*(?P<quote>['\"]?)(?P<mark>[A-Za-z_][\w.-]*)(?P=quote))"
    r"|(?P<redirect>(?:&|\d)?>>?[|&]?|<<<|<(?!\())"
    r"|(?P<cut>\n|;;?|&&|\|\|?&?|&|[(){}](?=\s|$|;)|\()"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\([^()]*\)|\$\{[^}]*\}|`[^`]*`|[^\s;&|<>()'\"\\`$]+|"
    r"[$'\"`\\<)(])+?"
    r"(?=[\s;&|<>()]|\Z))"
    r"|(?P<other>.)",
    re.DOTALL,
)
_QUOTED_HEREDOC = re.compile(
    r"\$\(\s*cat\s+<<-?\s*(['\"]?)(\w+)\1[ \t]*\n.{0,8000}?^[ \t]*\2[ \t]*$\s*\)", re.DOTALL | re.MULTILINE
)
"""A text given as "$(cat <<'EOF' … EOF)": its own quotes would end the outer ones."""
_PLAIN_PART = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"|([^'\"\\]+)|(.)", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = word_set("sudo time nohup command exec env nice rtk stdbuf xargs builtin then do else if while !")
_SHELLS = word_set("bash sh zsh dash ksh fish pwsh powershell powershell.exe cmd cmd.exe")


class ShellStep(msgspec.Struct, frozen=True):
    """One simple command: its words, its redirections as (operator, target), and the folder it runs in."""

    words: tuple[str, ...]
    redirects: tuple[tuple[str, str], ...] = ()
    cwd: str = ""


class Effect(msgspec.Struct, frozen=True):
    """What a step does to a file: read, created, modified or deleted; `source` is where a move came from."""

    path: str
    status: str
    source: str = ""


def unquote(word: str) -> str:
    """Take the quoting off one word."""
    if not re.search(r"['\"\\]", word):
        return word
    return "".join(
        match.group(1)
        or match.group(2)
        or re.sub(r"\\(.)", r"\1", match.group(3) or "")
        or match.group(4)
        or ""
        for match in _PLAIN_PART.finditer(word)
    )


def join(cwd: str, path: str) -> str:
    """Join a path to the folder it is relative to, dots resolved."""
    whole = (
        path if not cwd or path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path) else f"{cwd}/{path}"
    )
    if "./" not in whole and "//" not in whole and not whole.endswith("/."):
        return whole
    parts: list[str] = []
    for part in whole.split("/"):
        if part == ".." and parts and parts[-1] not in ("", "..", "~"):
            parts.pop()
        elif part not in (".", "") or (part == "" and not parts):
            parts.append(part)
    return "/".join(parts) or whole


@functools.lru_cache(maxsize=256)
def steps(command: str, cwd: str = "") -> tuple[ShellStep, ...]:
    """Split a command line into its simple commands, `cd` followed; at most its first 20,000 characters.

    The last few answers are remembered: several kinds of fact ask about the same command.
    """
    text = _QUOTED_HEREDOC.sub("HEREDOC", command[:_SCANNED])
    line = _Line(cwd)
    marks: list[str] = []
    at = 0
    while at < len(text) and (match := _TOKEN.match(text, at)):
        at = match.end()
        kind = match.lastgroup
        if kind in ("mark", "quote", "heredoc"):
            marks.append(match.group("mark"))
        elif kind == "redirect":
            line.operator = match.group()
        elif kind == "word":
            line.add(unquote(match.group()))
        elif kind == "cut":
            if match.group() == "\n" and marks:
                at = _after_heredocs(text, at, marks)
                marks = []
            line.close()
    line.close()
    return tuple(line.found)


class _Line:
    """The simple command that is being read, and those read before it."""

    def __init__(self, cwd: str) -> None:
        self.found: list[ShellStep] = []
        self.cwd = cwd
        self.operator = ""
        self._words: list[str] = []
        self._redirects: list[tuple[str, str]] = []

    def add(self, word: str) -> None:
        """Take a word: the target of a redirection that waits for one, else a word of the command."""
        if self.operator:
            self._redirects.append((self.operator, word))
            self.operator = ""
        else:
            self._words.append(word)

    def close(self) -> None:
        """End the command; a `cd` moves those that follow."""
        if self._words or self._redirects:
            self.found.append(ShellStep(tuple(self._words), tuple(self._redirects), self.cwd))
            self.cwd = _moved(self._words, self.cwd)
        self._words, self._redirects, self.operator = [], [], ""


def _after_heredocs(text: str, at: int, marks: list[str]) -> int:
    """Return where the command goes on after the heredocs that begin at `at`."""
    for mark in marks:
        end = re.compile(rf"^[ \t]*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(text, at)
        if end is None:
            return len(text)
        at = end.end()
    return at


def _moved(words: list[str], cwd: str) -> str:
    """Return the folder after a `cd`."""
    if (
        len(words) > 1
        and words[0] in ("cd", "pushd", "Set-Location")
        and "$" not in words[-1]
        and words[-1] != "-"
    ):
        return join(cwd, words[-1].rstrip("/") or "/")
    return cwd


def bare(words: tuple[str, ...]) -> tuple[str, ...]:
    """Drop leading assignments and wrappers (`sudo`, `env`, `timeout 30`) from the words of a step."""
    at = 0
    while at < len(words):
        word = words[at]
        if _ASSIGNMENT.match(word) or word in _WRAPPERS:
            at += 1
        elif word in ("timeout", "gtimeout") and at + 1 < len(words):
            at += 2
        else:
            break
    return words[at:]


def script(argv: list[str]) -> str:
    """Return the command line of an argument list: the text after `bash -lc`, else the words joined."""
    name = argv[0].rsplit("/", 1)[-1] if argv else ""
    if (
        name in _SHELLS
        and len(argv) > 2
        and argv[1].lower() in ("-c", "-lc", "-ic", "-command", "/c", "-lic")
    ):
        return argv[2]
    return " ".join(argv)


def _operands(words: tuple[str, ...], values: str = "") -> list[str]:
    """Return the words that are no flags; `values` are the flags (single letters) that take the next word."""
    found: list[str] = []
    skip = False
    only = False
    for word in words[1:]:
        if skip:
            skip = False
        elif only or not word.startswith("-") or word == "-":
            found.append(word)
        elif word == "--":
            only = True
        elif len(word) == 2 and word[1] in values:
            skip = True
    return found


_READERS = {
    "cat": "", "head": "nc", "tail": "nc", "less": "", "more": "", "bat": "rHl", "nl": "", "wc": "",
    "xxd": "ls",
    "file": "", "od": "", "strings": "", "tac": "", "Get-Content": "", "type": "", "source": "",
}  # fmt: skip


def effects(step: ShellStep) -> Iterator[Effect]:
    """Yield what a step does to files, by the commands that name them."""
    words = bare(step.words)
    for effect in (*_by_name(words), *_by_redirect(step)):
        if _is_file(effect.path):
            source = join(step.cwd, effect.source) if effect.source else ""
            yield Effect(join(step.cwd, effect.path), effect.status, source)


def _by_redirect(step: ShellStep) -> Iterator[Effect]:
    for operator, target in step.redirects:
        if operator.startswith("<"):
            if operator == "<":
                yield Effect(target, "read")
        elif not operator.endswith(">&"):
            yield Effect(target, "modified" if ">>" in operator else "created")


def _by_name(words: tuple[str, ...]) -> Iterator[Effect]:
    name = words[0].rsplit("/", 1)[-1] if words else ""
    if name == "git":
        folder = words[words.index("-C") + 1] if "-C" in words[1:-1] else ""
        for effect in _by_git(git_words(words)):
            yield Effect(
                join(folder, effect.path), effect.status, effect.source and join(folder, effect.source)
            )
    elif name in ("rm", "unlink", "trash", "Remove-Item", "del"):
        yield from (Effect(path, "deleted") for path in _operands(words))
    elif name in ("mv", "cp", "install", "ln", "Move-Item", "Copy-Item"):
        yield from _transfers(_operands(words, "mogtS"), name in ("mv", "Move-Item"))
    elif name in ("touch", "truncate", "New-Item"):
        yield from (Effect(path, "created") for path in _operands(words, "dtrs"))
    elif name == "tee":
        status = "modified" if any(word in ("-a", "--append") for word in words) else "created"
        yield from (Effect(path, status) for path in _operands(words))
    elif name in ("sed", "gsed", "perl", "ruby"):
        yield from _stream_edits(words, name)
    elif name in _READERS:
        yield from (Effect(path, "read") for path in _operands(words, _READERS[name]))


def git_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a git command from its verb on, the options of git itself left out."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("-C", "-c", "--git-dir", "--work-tree") else 1
    return words[at:]


def _by_git(words: tuple[str, ...]) -> Iterator[Effect]:
    verb = words[0] if words else ""
    if verb == "mv":
        yield from _transfers(_operands(words), moves=True)
    elif verb == "rm" and "--cached" not in words:
        yield from (Effect(path, "deleted") for path in _operands(words))
    elif verb in ("checkout", "restore") and ("--" in words or verb == "restore") and "--staged" not in words:
        paths = words[words.index("--") + 1 :] if "--" in words else tuple(_operands(words, "s"))
        yield from (Effect(path, "modified") for path in paths)


def _transfers(operands: list[str], moves: bool) -> Iterator[Effect]:
    """Yield the effects of a move or copy of the operands to the last of them."""
    if len(operands) < 2:
        return
    target = operands[-1]
    folder = len(operands) > 2 or target.endswith("/") or target in (".", "..")
    for source in operands[:-1]:
        place = f"{target.rstrip('/')}/{source.rstrip('/').rsplit('/', 1)[-1]}" if folder else target
        if not _is_file(source):
            continue
        if moves:
            yield Effect(source, "deleted")
        yield Effect(place, "created", source if moves else "")


def _stream_edits(words: tuple[str, ...], name: str) -> Iterator[Effect]:
    """Yield the files of a sed or perl call: modified with -i, else read. The first operand is the script."""
    flags = [word for word in words[1:] if word.startswith("-")]
    in_place = any(re.match(r"-(?:i|-in-place|[A-Za-z]*i)", flag) for flag in flags)
    operands = [word for word in _operands(words, "ef" if name != "perl" else "eEI") if word]
    has_script_flag = any(re.match(r"-\w*[eEf]\Z", flag) for flag in flags)
    files = operands if has_script_flag else operands[1:]
    if has_script_flag and files and not any(re.match(r"-[efE]\Z", flag) for flag in flags):
        files = files[1:]
    if name in ("perl", "ruby") and not in_place:
        return
    yield from (Effect(path, "modified" if in_place else "read") for path in files)


def _is_file(path: str) -> bool:
    """Whether a word can be the name of one file: no variable, pattern, device, stream or code."""
    return (
        1 <= len(path) <= 300
        and not re.search(r"[$*?`\n\"'|<>{}\\=(),;!]|^-|^&|^\d$|^~?/?$|^\.{1,2}$|://|\s{2}|^\s|\s$", path)
        and not path.startswith(("/dev/", "/proc/"))
        and any(letter.isalnum() for letter in path)
    )
