"""Whether a sentence of the user's changes a rule: takes it back, or says what holds from now on.

Only an order or a permission does. A report ("emails no longer log"), a question, a task and a condition
change nothing, whatever words they share with a rule. `Change.said` is the sentence without the words that
announce the change, so that what it is about can be compared.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from foldline.core.ledger.text.cues import is_constraint
from foldline.core.ledger.text.needed_words import LIFTING

Kind = Literal["none", "adds", "lifts", "turns", "announces"]

_LEAD: Final = (
    r"^\W*(?:(?:ok(?:ay)?|yes|well|actually|also|and|but|so|now|fine|right|alright|please|btw|from now on|"
    r"as of (?:now|today)|starting (?:now|today)|after all|bitte|ab (?:jetzt|sofort)|doch)\b[\s,:;.!–—-]*)*"
)
_CLAUSE: Final = rf"(?:{_LEAD}|[,;:–—]\s+(?:so |and |but )?)"
_AGAIN: Final = r"(?:now|again|after all|from (?:now|here) on|any ?more)"
_SPOKEN: Final = r"(?:rule|constraint|requirement|restriction|ban|limit|instruction|convention)"

# All patterns but the last are for lower-case text: to match without regard to case takes twice as long.
LIFTS: Final = re.compile(
    # You may now push. You can push again.
    rf"{_CLAUSE}you(?:['’]re| are)? (?:(?:may|can|allowed to|free to) now|now (?:may|can|allowed to)) \w+|"
    rf"{_CLAUSE}now you (?:may|can) (?!see|find|tell|imagine|not)\w+|"
    rf"{_CLAUSE}(?:from (?:now|here) on,? )?(?:you(?:['’]re| are)? (?:may|can|allowed to|"
    rf"free to)|feel free to) (?!see|find|tell|imagine|not)(?:[^,.;?]|\.(?=\w)){{1,60}}\b{_AGAIN}\b|"
    rf"{_LEAD}[^,;?]{{2,60}} may (?:now be \w+|be \w+ {_AGAIN})\W*$|"
    rf"{_LEAD}from (?:now|here) on,? you (?:may|can)\b|"
    # Pushing is allowed now. Emojis are fine after all. It's ok to push.
    rf"{_LEAD}[^,;?]{{2,60}} (?:is|are) (?:(?:now|again) (?:allowed|permitted)|(?:allowed|"
    rf"permitted) {_AGAIN})\b|"
    rf"{_LEAD}(?:\w+ing\b[^,;?]{{0,60}}|[^,;?]{{2,60}}) (?:is|are) (?:ok|okay|fine) (?:after all|again|"
    rf"from (?:now|here) on)\W*$|"
    rf"{_LEAD}(?!(?:the|these|those|all|my|your|our)\b)[\w -]{{2,40}}s are (?:now (?:ok|okay|fine)|(?:ok|"
    rf"okay|fine) now)\W*$|"
    rf"{_LEAD}\w+ing\b[^,;?]{{0,60}} (?:is|are) (?:now (?:ok|okay|fine)|(?:ok|okay|fine) now)\W*$|"
    rf"{_LEAD}(?:it|that)(?:['’]s| is) (?:now )?(?:ok|okay|fine|allowed|permitted)(?: now)? (?:to|if you)\b|"
    # You need not ask any more. Refunds no longer need my approval.
    rf"{_LEAD}(?:you )?(?:no longer (?:need|have)|need no longer|do(?: not|n['’]t) (?:need|"
    rf"have)) to\b.{{1,90}}|"
    r"\bno longer (?:needs?|ha(?:ve|s) to|appl(?:y|ies)|(?:is |are )?(?:required|necessary|forbidden))\b|"
    rf"{_LEAD}no need to\b.{{1,90}}|\bneed(?: not|n['’]t)\b.{{1,90}}\bany ?more\b|"
    # Forget the rule about emojis. The limit is lifted.
    rf"{_LEAD}(?:forget|ignore|drop|lift|disregard|scrap)\b.{{0,60}}\b(?:{_SPOKEN}s?|thing)\b|"
    rf"{_LEAD}(?:forget|ignore|disregard) (?:about|what i said)\b|\bi (?:hereby )?(?:take back|lift|"
    rf"withdraw)\b|"
    rf"\b(?:do|does)(?: not|n['’]t) (?:need|have to|require)\b.{{1,90}}\bany ?more\b|"
    rf"\b{_SPOKEN}\b.{{0,50}} (?:is|are) (?:hereby |now )?(?:lifted|gone|dropped|withdrawn|void|off)\b|"
    rf"{_LEAD}(?:du )?(?:darfst|kannst) (?:du )?(?:jetzt|nun|wieder|ab jetzt)\b|"
    r"\b(?:ist|sind) (?:jetzt|nun|wieder) (?:erlaubt|in ordnung)\b|"
    r"\b(?:muss|müssen|musst|brauchst?|braucht)\b.{0,60}\bnicht mehr\b|"
    rf"{_LEAD}(?:(?:maintenant|désormais),? )?(?:tu peux|vous pouvez) (?:maintenant|désormais|de nouveau)\b|"
    r"\b(?:plus besoin de|(?:est|sont) (?:maintenant|désormais|de nouveau) (?:permis|autorisé)\w*)|"
    rf"{_LEAD}(?:ya|ahora(?: ya)?) (?:puedes|se permite|está permitid[oa])\b|"
    r"\bya no (?:hace falta|es necesario|tienes que)\b|"
    r"现在(?:开始)?可以(?!看)|不用再|不必再|不需要再|取消.{0,12}(?:规则|限制|要求)|"
    r"もう.{0,40}(?:いいです|いいよ|構いません|かまいません|必要(?:は)?(?:ない|ありません))|"
    r"(?:制限|ルール)は(?:解除|撤回)",
)
_ANNOUNCED: Final = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|well|and|sorry|small|quick)\b[\s,]*)*(?:"
    r"(?:change of (?:plans?|rules?|mind)|(?:new|updated|changed) (?:rule|limit|plan|convention|"
    r"requirement|default)|"
    r"correction|update|scratch that|(?:on )?second thoughts?|i(?:['’]ve|"
    r" have)? changed my mind)\s*[:,;.!–—-]+"
    r"|(?:neue regel|planänderung|korrektur|geändert|changement de plan|nouvelle règle|cambio de planes?|"
    r"nueva regla)"
    r"\s*[:,;.–—-]+|(?:计划有变|新规则|更正|変更|訂正|新しいルール)\s*[:：,，、。])\s*",
)
"""What says at the head of a sentence that the rest of it replaces something said earlier."""
_TURNS: Final = re.compile(
    r"\b(?:actually|instead|after all|no longer|any ?more|doch|stattdessen|nicht mehr|finalement|plutôt|"
    r"mejor|"
    r"ahora)\b|\bswitch (?:back )?to\b|\blet['’]?s (?:use|go with)\b|改用|改成|改为|やっぱり|"
    r"^\W*we(?= now use\b| use\b.*\bnow\W*$)",
)
"""Words that turn something around, in a sentence that is an order."""
_DISPLACED: Final = re.compile(
    r"(?:\binstead of|\brather than|\bin place of|, not|\band not|\bno longer|\bstatt|\bau lieu d[eu']|"
    r"\ben (?:lugar|vez) de)\s+(.{2,60})",
)
"""What a sentence says it puts another thing in the place of."""
_ADDS: Final = re.compile(r"\b(?:also|either|too|as well|additionally|auch|aussi|también)\b|也")
_KEEPS: Final = re.compile(
    r"\b(?:do not|don['’]?t|never) (?:ever )?(?:forget|ignore|drop|lift|disregard|scrap)\b|"
    r"\b(?:did not|didn['’]t|never) (?:say|mean)\b",
)
_ORDER: Final = re.compile(
    _LEAD + r"(?:let['’]?s |we(?:['’]ll| will| now| only| just)* |i(?:['’]d| would)? (?:want|like|prefer) |"
    r"(?:you|it|they) (?:should|must|may|can)|switch|use|add|write|store|keep|put|make|answer|reply|respond|"
    r"speak|format|name|call|run|log|show|return|send|save|sort|wrap|quote|indent|squash|merge|rebase|deploy|"
    r"commit|push|test|don['’]?t|do not|stop|no more|go with|go back|set|limit|allow|never|always|prefer|"
    r"(?:nimm|nutze|verwende|benutze|antworte|schreib|utilise|réponds|écris|usa|utiliza|responde|"
    r"escribe)\w*\b)|"
    r"用|使|してください",
)
_REPORT: Final = re.compile(
    r"[?？]\W*$|"
    r"^\W*(?:why|what|how|who|where|when|is|are|was|were|does|did|has|have|can|could|would|should|ask|"
    r"fix|wait|"
    r"warum|wieso|pourquoi|por qué)\b|"
    r"\b(?:debug|investigate|look into|find out|figure out|please fix|fix (?:it|this|that)|broken|broke|bug|"
    r"crash\w*|fail(?:s|ed|ing)?|errors?|stopped working|(?:does|did|is|are|was|were|has|have)(?: not|"
    r"n['’]t) "
    r"\w+|the (?:docs?|spec|readme|error|log|message)\w* says?|says? that|i can['’]?t|i cannot|"
    r"i will tell you|"
    r"since (?:the|this|last|yesterday)|on my (?:laptop|machine)|arréglalo|ne marche|funktioniert|"
    r"no funciona|"
    r"geht nicht|kann (?:jetzt )?nicht)\b",
)
"""A question, a task, or a sentence that tells how things are: none of them changes a rule."""
_PASSING: Final = re.compile(
    r"\b(?:just (?:this )?once|this (?:one )?time|this once|for (?:now|this)|"
    r"(?<!as of )(?<!starting )(?<!from )today|tonight|until|for the moment|"
    r"dieses? (?:eine )?mal|nur heute|cette fois|esta vez)\b|这次|今回だけ",
)
_HEDGED: Final = re.compile(
    r"\b(?:if|when|once|unless|except|but|while|as long as|provided|only|wenn|außer|aber|si|sauf|salvo|"
    r"pero)\b|"
    r"\b(?:because|due to|for the (?:\w+ )?(?:release|hotfix|demo)|no need to(?!.*any ?more))\b|如果|除非|但|"
    r"場合|ただし",
)
_LIFTED: Final = re.compile(
    rf"\b(?:forget|ignore|drop|lift|disregard|scrap)\b.{{0,40}}?\b(?:{_SPOKEN}|thing|said) "
    r"(?:about|on|for|of|that|with) ([^;,.!?]+)|"
    rf"\b(?:forget|ignore|drop|lift|disregard|scrap)(?: about)? (?:the|that|this|"
    rf"my) (.{{2,40}}?) {_SPOKEN}s?\b|"
    rf"\b{_SPOKEN} (?:about|on|for|of|that|with) (.{{2,60}}?) (?:no longer|is|are|does)\b|"
    rf"^(.{{2,40}}? {_SPOKEN}\b.{{0,50}}?) (?:is|are) \w+",
)
"""What a sentence that lifts says it lifts: "forget the rule about 3 sentences"."""
_OF_CHANGE: Final = re.compile(
    rf"{_ANNOUNCED.pattern}|{_TURNS.pattern}|\b(?:fine|allowed|permitted|lifted|gone|dropped|forget|ignore|"
    rf"drop|lift|disregard|scrap|free to|take back|said|required|necessary|{_SPOKEN}s?|unlimited|again)\b|"
    r"\b(?:erlaubt|maintenant|permis|ya puedes|ahora)\b|现在|取消",
    re.IGNORECASE,
)


class Change(msgspec.Struct, frozen=True):
    """How a sentence changes rules: it adds to them, lifts, turns one around or announces that it replaces.

    `said` is the sentence without the words that tell so, `lifted` what it says it lifts, `displaced` what
    it puts another thing in the place of; `hedged` holds where a condition limits what it changes.
    """

    kind: Kind
    said: str
    lifted: str = ""
    displaced: str = ""
    hedged: bool = False


@lru_cache(maxsize=1_024)
def change_of(sentence: str) -> Change:
    """Read whether and how a sentence of the user's changes a rule that was said before it."""
    lowered = sentence.lower()
    kind = _kind_of(sentence, lowered)
    if kind in ("none", "adds"):
        return Change(kind, sentence)
    lifted, displaced = _LIFTED.search(lowered), _DISPLACED.search(lowered)
    return Change(
        kind,
        _OF_CHANGE.sub(" ", sentence),
        next(filter(None, lifted.groups()), "") if lifted and kind == "lifts" else "",
        displaced.group(1) if displaced else "",
        bool(_HEDGED.search(lowered)),
    )


def _kind_of(sentence: str, lowered: str) -> Kind:
    if len(lowered) > _LONGEST or _PASSING.search(lowered) or _REPORT.search(lowered):
        return "none"
    if _ANNOUNCED.match(lowered):
        return "announces"
    if _ADDS.search(lowered):
        return "adds"
    if _KEEPS.search(lowered):
        return "none"
    if can_lift(lowered) and LIFTS.search(lowered):
        return "lifts"
    turns = _TURNS.search(lowered) or _DISPLACED.search(lowered)
    return "turns" if turns and (_ORDER.search(lowered) or is_constraint(sentence)) else "none"


def can_lift(lowered: str) -> bool:
    """Whether a sentence, lower case, has a word that lifts: a look at these costs far less than `LIFTS`."""
    return not lowered.isascii() or any(word in lowered for word in LIFTING)


_LONGEST: Final = 300  # characters beyond which a sentence describes; it changes no rule
