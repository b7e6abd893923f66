"""The rules by which a sentence of the user's is a standing constraint. Their list is in docs/ledger.md.

A sentence is one if a rule of any language finds it and no veto does. Quoted text and inline code are
taken out first: they are mentioned, not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from foldline.core.ledger.text import vetoes
from foldline.core.ledger.text.foreign_cues import FRENCH, GERMAN, OTHERS, SPANISH
from foldline.core.ledger.text.needed_words import NEEDED

LONGEST = 400
"""Characters beyond which a sentence is a description, not a rule."""

_MENTIONED = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|„[^“”\n]{1,200}[“”]|«[^»\n]{1,200}»|「[^」\n]{1,200}」"
)
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)")

_CLAUSE = (
    r"(?:^|[.,;:!(\]–—]\s*|\s-\s|"
    r"\b(?:and|but|so|also|please|pls|then|just|or|ok|okay|yes|yeah|no|well|btw|you)\s+)"
)
_VERB = (
    r"(?!\w+(?:ing|ly)\b)(?!(?:think|know|see|mind|worry|bother|understand|believe|care|remember|forget|get|"
    r"have|like|need|"
    r"want|recall|seem|work|exist|even|really|we|you|i|they|it|the|a|this|that)\b)\w+"
)
_THING = r"(?!\s+(?:it|that|this)\b(?!\s+\w+\s))"
_DO = (
    r"(?:use|add|change|touch|modify|edit|write|import|run|commit|push|show|render|return|include|call|log|"
    r"keep|allow|"
    r"ask|test|check|update|document|create|make|put|read|prefer|answer|respond|reply|format|name|work|"
    r"store|send|do|"
    r"raise|throw|catch|handle|support|accept|print|pass|build|deploy|open|delete|remove|start|validate|"
    r"verify|escape)"
)
_MODAL = r"(?:should|must|has to|have to|needs to|need to|may|can|shall|ought to|is to|are to)"
_LANGUAGE = (
    r"(?:english|german|french|spanish|italian|portuguese|"
    r"chinese|japanese|korean|russian|dutch|polish|turkish|danish|swedish|norwegian|finnish|czech|greek|"
    r"hindi|"
    r"arabic|hebrew|ukrainian|romanian|hungarian|latin)"
)

_NUMBER = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty)"
_DOES = (
    r"(?:edits?|changes?|commits?|push(?:es)?|deploys?|sees?|skips?|merges?|deletes?|restarts?|approves?|"
    r"touch(?:es)?)"
)
_BOUND = r"(?:at most|at least|no (?:more|fewer|less|longer) than|max(?:imum)?(?: of)?|minimum(?: of)?|up to)"
_KIND = (
    r"(?!(?:the|this|that|these|those|it|its|there|here|he|she|they|i|you|we|my|your|our|what|which|who|no|"
    r"yes|ok|so|and|but|maybe|now|then|one|some|a|an)\b)"
)
"""Before a noun that means all of its kind: "user data", not "the user"."""

_ENGLISH = {
    "never": rf"{_CLAUSE}never,? (?:ever,? )?\s*(?!mind\b|been\b|had\b|\w+(?:ed|s)\b){_VERB}|"
    rf"\b{_MODAL}\s+never\b|"
    r"\b(?:i|we)\s+never\s+(?:want|use|do|allow|write|commit|push|log|store|import|mock)\b",
    "always": rf"{_CLAUSE}always\s+(?!\w+(?:ed|s)\b|(?:the|this|that|these|an?|when|got)\b)\w+|"
    rf"\b(?:{_MODAL}|will|(?:want|sure|remember|like)(?: "
    rf"you)? to|are|we)\s+always\s+(?!been\b)\w+|"
    rf"{_CLAUSE}{_DO}\b[^,.;]{{0,60}}\balways\b|"
    r"\blet['’]?s always\b|^\W*(?:our|my) [\w ]{2,30} (?:is|are) always \w+(?:ed|en)\b",
    "prohibition": rf"{_CLAUSE}(?:don['’]?t|do not|do never)\s+(?:ever\s+|directly\s+|just\s+)"
    rf"?{_VERB}\b{_THING}",
    "our custom": r"\bwe\s+(?:don['’]?t|do not)\s+(?:want|use|do|write|allow|add|ship|mock|import|log|"
    r"accept|commit|support)\b|"
    r"\bwe\s+(?:want to|try to|like to)\s+(?:avoid|keep|always|never|ensure|make sure)\b|\bwe\s+(?:only|"
    r"exclusively)\s+(?:use|want|support|allow|accept|ship|write)\b|"
    r"\bwe\s+use\b.{1,60}(?:, not\b|\bnot\b|\beverywhere\b|\bin this (?:repo|project|codebase)\b)|"
    r"\b(?:in|for) (?:this|our) (?:project|repo|codebase|team|company),? (?:we|you)\b|"
    r"\bwe (?:do not|don['’]?t) (?:offer|ship|pay|sell|deliver|share|give|take|build|call|touch|run|test|"
    r"deploy|merge|push|store|keep|send|answer)\b|"
    r"^\W*we (?:always )?(?:pin|squash|rebase|lint|review|version|sign|encrypt|document) (?:all|every|"
    r"each|our)\b",
    "i do not want": r"\bi\s+(?:don['’]?t|do not|never)\s+(?:ever\s+)?want\s+(?!it\b|that\b|this\b|"
    r"to (?!see\b|have\b|find\b|get\b|ever\b))|\bi "
    r"want\b.{1,80}\b(?:only|never|always)\b|"
    r"^\W*i want (?:all|every|each)\b|^\W*only (?:i|we)\s+(?!have\b|had\b|see\b|know\b|need\b|did\b)\w+|"
    r"\bi(?:['’]d| would) like you to (?:always|never|ask|only|avoid)\b|"
    r"\bi want you to (?:use|write|answer|reply|keep|prefer|follow|treat|ask|avoid) (?!(?:the|this|that|"
    r"it|an?|your|my|these|those)\b)\w+",
    "must": r"\b(?:must not|mustn['’]?t|must (?:only|never|always|remain|stay|keep))\b|"
    r"\bmust\s+(?!have\s+(?:been\b|\w+ed\b)|be\s+(?:the|a|an|some\w*|something|because|due|wrong|right|"
    r"kidding)\b|say\b|admit\b|i\b|"
    r"we\b)(?!.*\bgot\b)\w+|"
    rf"^\W*{_KIND}(?:[\w-]+ )?[\w-]+s (?:[\w-]+ ){{0,4}}(?:have to|need to|must) be \w+|"
    r"\b(?:is|are) (?:banned|mandatory|obligatory|compulsory|taboo|immutable|untouchable|read[- ]only)\b|"
    r"^\W*you (?:have to|must|need to) (?!(?:have|be|see|go|come|help)\b)\w+|"
    r"\b(?:is|are) not to be \w+(?:ed|en|ged)\b|"
    r"^\W*(?:the|our) (?:tone|style|format|wording|language|layout|name)s? [\w ]{0,30}(?:must|has to|"
    r"have to|should|needs to|is always)\b|"
    rf"^\W*{_KIND}(?:[\w-]+ ){{0,3}}(?:has|have) to (?!(?:be (?:the|a|some)|wait|log in|go|see|find)\b)\w+|"
    rf"^\W*{_KIND}(?:[\w-]+ ){{1,3}}(?:is|are) (?:confidential|secret|private|append-only|internal|final)\b|"
    r"\byou (?:are|['’]re) only allowed to\b",
    "may not": r"\byou (?:may|can)(?: not|not|['’]t) (?!be\b)\w+|\byou may only\b|\bmay (?:only|never)\b|"
    r"\b(?:not|n['’]t|never) (?:be )?(?:allowed|permitted|acceptable)\b|\b(?:forbidden|off[ -]limits|"
    r"prohibited)\b|"
    r"\bis allowed to\b.{0,60}\bonly\b|\bnothing\b.{1,40}\bis allowed\b|"
    r"(?<!this )(?<!\bit )(?<!that )(?<!which )(?<!there )(?<!they )(?<!\bi )(?<!we )\bmay not (?!be\b|"
    r"have\b|work|exist|need|want|always|even|notice|know|see\b|like|understand)\w+|"
    r"\bread[- ]only\W*$|"
    r"\b(?:is|are)(?: not|n['’]?t) (?:ok|okay|fine) (?:to|if)\b",
    "should not": r"(?<!there )\bshould (?:only|never|always)\s+\w+|(?<!there )(?<!\bit )(?<!this )(?<!that "
    r")(?<!they )\bshould(?:n['’]?t| not| still not)\s+(?!be\s+(?:too|that) )\w+|"
    r"^\W*only\b[^,.]{1,60}\bshould\b|"
    r"^(?!\W*q:)[^?]{0,60}\bshould (?!be \w+ing)[^,]{1,60}, not\b|"
    rf"^\W*{_KIND}(?:[\w-]+ ){{0,2}}[\w-]+s should (?!have\b|be able\b|be \w+ing\b|work\b|pass\b|now\b)\w+",
    "every": r"(?<!where )(?<!whether )\b(?:each|every|all|any)\b(?:(?!\b(?:and|but|if|that)\b)[^,.;?])"
    r"{1,60}\b"
    r"(?:should|must|has to|have to|needs?|requires?)\s+\w+|\bfor (?:each|every)\b[^,.]{1,40}\bshould\b|"
    r"\b(?:before|after|in|on|with) (?:each|every)\b.{1,40}, \w+|"
    rf"^\W*(?:before|after) (?:each|every)\b.{{1,40}}\b{_DO}\b|"
    r"^\W*(?:and )?for all future\b|"
    r"^\W*(?:please )?(?!(?:i|it|we|you|they|he|she|the|this|that|there)\b)[\w-]+ [\w ]{2,30} (?:before|"
    r"after) (?:every|each) \w+\W*$",
    "universal": r"^\W*(?:all|every|each) (?!(?:i|you|we|it|that|the|these|those|my|your|our|of|in all|"
    r"\d+|two|three)\b)[\w/-]+(?: [\w/-]+){0,3} (?:is|are|stays?|goes?|go|lives?|uses?) (?!(?:\w+ing|"
    r"\w+ed(?! (?:in|as|to|at|by|with|through)\b)|red|green|done|good|fine|gone|the same|ok|back|still|"
    r"there|here|up|down|null|empty|wrong|"
    r"in order|broken)\b)[^,.;?!]{1,40}\W*$|"
    rf"^\W*{_KIND}(?:[\w'-]+ ){{1,4}}(?:is|are) always (?!(?:slow|broken|wrong|empty|red|null|late|off|"
    rf"on|there|missing|the)\b)\w+|"
    rf"^\W*{_KIND}(?:[\w'-]+ ){{1,3}}(?:stays?|lives?|belongs?|goes?|go) (?:in|inside|under|within|"
    rf"next to|behind|out of|through)\b|"
    rf"^\W*{_KIND}(?:[\w'-]+ ){{1,3}}default to \w+\W*$|\beverything (?:goes|has to go|"
    rf"must go) (?:through|via|to)\b|"
    r"^\W*(?:one|two|three|a single) [\w-]+ (?:per|for each|for every) \w+\W*$|"
    r"^\W*[\w-]+s first, (?:then|before)\b|"
    r"^\W*everything (?:you|we)\b.{2,40}\b(?:goes|has to|must|should|needs?|stays)\b|"
    r"^\W*(?:all|every|each) (?!(?:the|these|those|my|your|our|of|three|two|"
    r"\d+)\b)[\w-]+(?: [\w-]+)? (?:include|contain|carry|start|begin|end|follow|return|have|use)s? \w+|"
    rf"^\W*{_KIND}(?:[\w-]+ )?[\w-]+s are (?:named|called|written|stored|kept|sorted|formatted|prefixed|"
    rf"spelled|quoted|counted|measured|rounded|reviewed|approved) (?:in|as|after|by|with|to|at|on)\b|"
    r"\bnames? (?:start|begin|end)s? with\b|"
    rf"^\W*{_KIND}[\w-]+s (?:over|above|under|below|from|with|without) [^,.]{{2,40}} (?:go|need|require|"
    rf"are|must|have)\b|"
    r"^\W*(?:any|all|every) [\w ]{2,30} (?:goes|go) (?:through|via|into|under)\b",
    "limit": rf"^\W*(?:an? )?{_KIND}[^,.;?]{{2,50}}\b(?:can|may|must|should|needs?|has|have|is|"
    rf"are)\b[^,.;?]{{0,30}}\b{_BOUND} {_NUMBER}\b|"
    rf"^\W*(?:{_BOUND}|not more than) {_NUMBER} \w+ (?:per|in|for|an?)\b|"
    rf"^\W*max(?:imum)? [\w ]{{2,30}} (?:is|of|:) ?\d|"
    r"^\W*max(?:imum)?\.? \d+ \w+\W*$|\bis the (?:minimum|maximum)\b|"
    r"^\W*(?:stay|keep) (?:under|below|within) ",
    "only": rf"{_CLAUSE}only\s+(?:ever\s+)?{_DO}\b|{_CLAUSE}{_DO}\s+only\b|\buse\b.{{0,40}}\bexclusively\b|"
    r"^\W*only (?!this\b|that\b|then\b|the (?:first|second|last)\b|one\b|two\b|three\b|some\b|a few\b|\d)"
    r"[^,.]{1,40}\b(?:may|(?:is|are) allowed to) (?!have\b|be\b|not\b)\w+|"
    r"^\W*only (?!(?:this|that|then|the|one|two|three|some|a few|i|we|you|it|he|she)\b|"
    r"\d)[^,.]{1,40}\bcan (?!(?:have|be|not|reproduce|tell|explain|help|fix)\b)\w+|"
    rf"^\W*only (?:the )?(?:[\w-]+ ){{1,3}}{_DOES}\b(?! it)|"
    rf"{_CLAUSE}(?:log|write|use|answer|reply|respond|return|print|store|commit|import|support|"
    rf"speak) [^,.;]{{2,40}} only\W*$|\bi only want (?!to (?:know|see|check|ask))",
    "not that but this": rf"{_CLAUSE}(?:use|write|prefer)\b.{{1,60}}, (?:not|never)\b|^\W*(?!ok\b|hmm|yes|"
    rf"no\b|stop\b|wait\b|hey\b|oh\b|sorry\b)[\w ]{{2,30}}, (?:not|never) (?!bad|sure|yet|really|now|that|"
    rf"this|it|working|good)\w+\W*$|"
    r"^\W*(?:all|every|each) (?!good|right|in all|of (?:it|this|that)\b)[^,.]{2,60}\b(?:is|are|goes?|stays?|"
    r"uses?)\b[^,.]{1,40}, never\b|"
    r"^\W*[\w ]{2,30}\bgo (in|into|under) [^,]{1,40}, (?:not|never) \1\b|"
    r"^\W*[\w ]{3,30}: [\w ]{2,30}, (?:not|never) \w+\W*$",
    "use for": r"^\W*(?:please )?use (?!the\b|this\b|that\b|an?\b|it\b)[^,.]{2,50}\bfor (?!the\b|this\b|"
    r"that\b|now\b|an?\b|it\b|me\b)\w+|"
    r"^\W*(?:please )?use (?!cases?\b)(?!.*\b(?:is|are|was)\b)[^,.]{1,60} everywhere\W*$|"
    r"^\W*(?:please )?use (?:port|version|python|node|java|ruby) v?\d[\d.]*\d?\W*$|"
    r"^\W*(?:please )?use (?!(?:cases?|the|this|that|an?|it|option|one|both|them|your|my|whatever|either|"
    r"what|which|these|those|only|not)\b|\d)[\w.+#-]+(?: (?!\d)[\w.+#-]+){0,2}[.! ]*$",
    "convention": r"^\W*(?:please )?(?:write|name|format|store|return|wrap|indent|quote|sort|spell|"
    r"prefix|express) (?!(?:the|this|that|it|an?|me|all the|your|my|some|these|them|"
    r"down)\b)(?:[\w-]+ ){1,3}(?:in|as|with|after|by|according to) \w+|"
    r"^\W*(?:also,? |and )?(?:commit messages?|(?:\w+ )?names?|line length|indentation|quotes|comments?|"
    r"docstrings?|type hints?|answers|replies|docs)(?: in [\w ]+ only\W*$|(?<!docs)(?:: | in \w+|"
    r"s? everywhere))|"
    r"^\W*(?!.*\b(?:is|are|was|were|i|it|errors?|see|fails?)\b)[a-z][\w -]{2,30} everywhere\W*$|"
    r"^\W*(?:please )?indent (?:with|by)\b|^\W*(?:please )?(?:sign|prefix|start|begin|end|mark|tag|label|"
    r"document|name|date) (?:every|each|all) ",
    "make sure": r"\b(?:make sure|ensure|see to it|be sure)\b.{0,50}\b(?:every|each|all|any|no|never|always|"
    r"not|only|nobody|nothing|"
    r"stays?|remains?|n['’]t)\b",
    "no such thing": r"^(?:(?:and|also|please|but),?\s+){0,2}no\s+(?=\w)(?!need|idea|wait|problem|worries|"
    r"matter|such|"
    r"one|more\s+\w+\s+found|i|we|you|it|this|"
    r"that|there|revert|remove|keep|let|write|do|don|not|what|why|luck|clue|way|is|wonder|matching|fixes|"
    r"changes|real|longer|rush|thanks)"
    r"[\w.-]+(?:\s+(?!found|applied|available|detected|exist|exists|specified|changed|matched|was|were|is|"
    r"are|has|have)[\w./'-]+){0,9}"
    r"\s*(?:[(,].{0,60})?[.!:)]*$|"
    r"(?:\bso|^(?!\W*(?:i(?! want| prefer)|i['’](?!d like)\w+|it|there|we|you|have|read|got|still|he|she|"
    r"they|this|that|"
    r"the)\b)[^(]{3,80}(?:[,;]|\band))\s+(?:please\s+)?no\s+(?:more\s+)?(?!(?:problem|idea|need|luck|"
    r"worries|rush|wonder|one|such|matter|errors?|changes?|results?|success|effect|clue|longer|way|"
    r"reason|difference|response|output|stress|hurry|big|more|i|we|you|it|that|this|"
    r"warnings?)\b)[\w./-]+(?:\s[\w./-]+){0,2}\W*$|"
    r"^\W*(?!(?:result|status|output|error|log|now|still)s?\b)[^:]{3,60}: no (?!(?:problem|idea|errors?|"
    r"changes?|results?|such|one|response|output|matches)\b)[\w-]+(?: [\w-]+){0,3}\W*$",
    "keep": r"(?:^\W*|[.;:!–—(]\s*|,\s*(?:and |but )?|\b(?:please|also|"
    r"just)\s+)(?<!we should also )keep\s+(?!in "
    r"mind|going|this\b|that\b|it\b|on\b|me\b|track\b|them\b|trying|doing|at it|up\b)\w+",
    "avoid": rf"{_CLAUSE}(?:try to )?avoid\s+(?!(?:it|this|that)\b)\w+|\bwe want to avoid\b|"
    r"\b(?:refrain|abstain) from\b|\bsteer clear of\b",
    "prefer": r"^\W*(?:in general,? )?prefer\b|\b(?:i|we|you should)\s+(?:generally |usually |always )"
    r"?prefer\b(?=.*\b(?:over|to|for all|in general|rather|"
    r"instead)\b)|"
    r"^\W*i['’]d rather (?:have|see) (?!(?:the|this|that)\b)\w+ .*\bthan\b",
    "stick to": rf"\bstick(?:ing)? (?:to|with) (?:the|our|this|that|a|existing)\b|{_CLAUSE}follow (?:the|"
    rf"our) \b.{{1,40}}\b(?:style|convention|guide|"
    r"rules|pattern|standards?|guidelines)\b|\bleave\b.{1,40}\b(?:alone|untouched|as (?:it is|is|they are))"
    r"\b|"
    r"\bhands off\b|\b(?:is|are) frozen\b|^\W*(?:please )?(?:stay|keep) (?:away from|out of) (?!it\b|this\b|"
    r"that\b|the way\b)\w|"
    r"^\W*(?:please )?treat\b.{2,60}\bas\b|"
    r"^\W*(?:please )?stick to (?!(?:it|this|that|the plan)\b)\w+",
    "standing": r"\b(?:from (?:now|here|this point) on(?:wards?)?|going forward|at all times|no matter what|"
    r"under (?:no|any) "
    r"circumstances?|without exceptions?|no exceptions|as a (?:general )?rule|the rule (?:is|here)|for the "
    r"rest of)\b|"
    r"^\W*in general,|^\W*in (?:the )?future,|\bthe (?:overriding|general|golden|main|most important) "
    r"(?:directive|rule|principle|constraint|goal) is\b|"
    r"\bit(?:['’]s| is) (?:very |really )?(?:important|essential|crucial|critical|vital) (?:that|to)\b|"
    r"\bat no (?:point|time) (?:should|may|must|can|do)\b",
    "remember": r"^\W*(?:please )?remember(?::| that| to| we| not)\s|\bkeep (?:that|this) in mind\b|"
    r"^\W*(?:please )?remember,\s",
    "permission": rf"\bwithout (?:my |our )?(?:explicit )?(?:permission|approval|consent|asking|"
    rf"confirmation|telling me|ok\b)|"
    rf"{_CLAUSE}(?:always )?(?:ask|check with|confirm with|tell|warn|notify) (?:me )?(?:first )?before\b|"
    rf"\bask me (?:first|before)\b|"
    r"\b(?:needs?|requires?) my (?:explicit |written )?(?:approval|consent|sign[ -]?off|ok)\W*$|"
    r"\b(?:ask|check with|tell|warn|confirm with) me\b[^.?]{0,20}\b(?:first|before|instead of|"
    r"if you plan)\b|\bask (?:first|b4)\b|\byou to ask before\b|"
    r"\b(?:needs?|requires?) (?:\w+['’]s?|my|an?|our|written|explicit)(?: \w+){0,2} (?:approval|consent|"
    r"sign[ -]?off|permission)\W*$|"
    r"^\W*before (?:you |any\b)[^,]{0,40}\b(?:a|an|any|anything|"
    r"something)\b[^,]{0,40}, (?:please )?(?:ask|check|tell|confirm)|"
    r"^\W*before you (?:change|delete|remove|touch|install|deploy|merge|send|pay|book|drop|"
    r"rename) (?:an?|any|anything|something)\b[^,]{0,40}, (?:please )?(?:talk|speak|ask|check|tell)|"
    r"^\W*(?:when|if) (?:in doubt|unsure|unclear|not sure)\b.{0,10}\b(?:ask|stop|tell)",
    "whenever": r"^\W*(?:whenever|every time|each time|any time) you\b.{1,80},\s*(?!i\b|it\b|we\b|the\b)\w+|"
    rf"^\W*(?:when|if) you\b(?!(?:['’]re| are) (?:done|finished|ready|sure)).{{1,80}},\s*(?:(?:please|"
    rf"also|then)\s+)*(?:{_DO}|always|never|make sure)\b|"
    r"^\W*(?:when|if) you\b.{1,80},\s*(?:please\s+)?also\s+(?!i\b|you\b|it\b|we\b|the\b|th(?:is|at)\b)\w+|"
    r"^\W*before (?:you )?(?:commit|push|submit|releas|merg)\w*\b.{0,60},\s*\w+|"
    rf"^\W*(?:if|when|whenever|every time|each time|any time) (?:an?|any) [^,]{{1,80}},\s*(?:please |"
    rf"always |then )*(?:ask|tell|show|{_DO})\b|"
    r"^\W*if you (?:find|see|notice|meet|come across) (?:an?|any|"
    r"something)\b[^,]{1,60}, (?:please )?(?:tell|ask|show|report|stop)",
    "manner": rf"\b(?:answer|respond|reply|speak|talk|communicate|comment)\b.{{0,40}}\bin "
    rf"{_LANGUAGE}\b|"
    r"\b(?:british|american|us|uk) (?:english|spelling)\b|(?<!used )\bthroughout\W*(?:please)?\W*$|"
    r"\b(?:for|in|across) the (?:whole|entire) (?:project|codebase|repo|repository)\b|"
    r"^\W*(?:please )?(?:answer|reply|respond)\w* (?:briefly|shortly|concisely|in (?:at most|short|plain|"
    r"full|one|two|three))\b|"
    r"\byour (?:answers|replies|responses|messages|summaries) (?:should|must|have to|are)\b|"
    rf"^\W*(?:please )?(?:speak|talk|write) (?:only )?{_LANGUAGE}\b|^\W*(?:please )?(?:call|"
    rf"address) me (?:as )?\w+\W*$|"
    rf"\bwrite (?!(?:an?|this|it|him|her)\b|the \w*[^s\W] in\b).{{0,40}}\bin {_LANGUAGE}\b|"
    r"\b(?:short|brief|concise) (?:answers|replies|messages)\b|"
    r"^\W*(?:please )?(?:address|greet) (?:customers|users|people|everyone|readers|them|us)\b|"
    rf"^\W*(?!.*\b(?:is|are|was|were|wrote|written|translate\w*)\b)(?:[a-z]+s|everything|"
    rf"all [a-z]+)(?: [a-z]+){{0,3}} in {_LANGUAGE}\W*$|"
    r"\bin all (?:our|my) \w+\W*$",
    "nothing": r"\b(?:nothing|nobody|no one|none of)\b(?:[^.]|\.(?=\w)){0,40}\b(?:talks?|imports?|calls?|"
    r"touch(?:es)?|writes?|depends?|reads?|uses?|may|should|must|"
    r"goes|gets|leaves)\b|"
    rf"\b(?:nobody|no one) (?:(?:but|except|other than)\b|{_DOES}\b)|"
    r"^\W*no [\w-]+ (?:should|must|may|can) (?!(?:be found|connect)\b)(?:have|be|contain|use|take|leave|"
    r"exceed)\b",
}  # fmt: skip


def _compiled(
    *tables: dict[str, str], flags: re.RegexFlag = re.NOFLAG
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(text, flags)) for table in tables for name, text in table.items())


_NOT_LATIN = frozenset(["zh", "ja", "ko", "ru"])
"""Rules that no sentence of ASCII alone can match."""


_WEAK = frozenset(
    [
        "make sure",
        "keep",
        "every",
        "universal",
        "limit",
        "must",
        "should not",
        "not that but this",
        "nothing",
        "no such thing",
    ]
)
"""Rules whose words also stand in single tasks and in descriptions: these need a short, plain sentence."""
_WEAK_LONGEST = 220
_SINGLE_TASK = re.compile(
    r"^\W*(?:(?:like|please|also|and|then|ok|okay|now|yes|so|but|next|first)\b,?\s*)*(?:let['’]?s\s+)?"
    r"(?:set|raise|lower|increase|decrease|reduce|bump|install|generate|write (?:that|this|it|the|an?)|"
    r"run|rerun|start|stop|send|call|update|move|review|fix|add|change|resume|implement|remove|rename|"
    r"refactor|merge|revert|find|look|read|go|create|"
    r"check|replace|restore|rerun|try|explain|tell|show|investigate|consider|propose|compare|can|could)\b"
    r"|^\W*(?:if the|since|while|because|although|for example|e\.g\.|as|given|currently|the current|in this "
    r"case)\b"
    r"|\s->\s",
    re.IGNORECASE,
)

# The rules are for lower-case text: to match without regard to case takes twice as long.
RULES = _compiled(_ENGLISH, GERMAN, FRENCH, SPANISH, OTHERS)
_TOLD = tuple(
    (name, pattern, NEEDED.get(name), name in _WEAK, name not in _NOT_LATIN) for name, pattern in RULES
)
VETOES = _compiled(vetoes.VETOES, flags=re.IGNORECASE)


@lru_cache(maxsize=1_024)
def rule_of(sentence: str) -> str | None:
    """Name the rule that makes a sentence a standing constraint, or None where none does or a veto stands."""
    if not 6 <= len(sentence) <= LONGEST:
        return None
    said = _EMPHASIS.sub("", _MENTIONED.sub("CODE", sentence)).strip()
    plain = len(said) <= _WEAK_LONGEST and not _SINGLE_TASK.search(said)
    lowered = said.lower()
    found = next((name for name, pattern in _possible(lowered, plain=plain) if pattern.search(lowered)), None)
    vetoed = found is not None and any(pattern.search(said) for _, pattern in VETOES)
    return None if vetoed else found


def _possible(lowered: str, *, plain: bool) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the rules that a sentence has the words for: a look at these costs far less than a rule does."""
    latin = lowered.isascii()
    for name, pattern, needed, is_weak, is_latin in _TOLD:
        if (plain or not is_weak) and (is_latin or not latin):
            if needed is None:
                yield name, pattern
                continue
            for word in needed:
                if word in lowered:
                    yield name, pattern
                    break


def can_match(rule: str, lowered: str) -> bool:
    """Whether a sentence, lower case, has what a rule needs."""
    return any(name == rule for name, _ in _possible(lowered, plain=True))


def is_constraint(sentence: str) -> bool:
    """Whether a sentence of the user's states what must always or never hold."""
    return rule_of(sentence) is not None
