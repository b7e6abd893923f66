"""Texts of eleven kinds for the test of the token counter: written for it, or made from the standard library."""

from __future__ import annotations

import base64
import difflib
import importlib.util
import json
import random
import sysconfig
import zlib
from pathlib import Path

ENGLISH = """\
The retry loop was the part nobody wanted to touch. It had grown over three years, one special case at a time, until the function that was meant to send a request again after a timeout knew about billing, about two regions that no longer existed, and about a customer whose name had been changed twice since. When Maria finally sat down with it on a quiet Thursday, she began by writing down what it promised, not what it did.

A request may be repeated only when repeating it cannot do harm. That sentence took her an hour, and it removed half of the code. The rest she split in two: a small pure function that decides, given the error and the number of attempts so far, whether to go on and how long to wait; and a thin shell that waits and calls. The first could be tested with a table of forty rows. The second hardly needed a test at all.

What surprised her was how many bugs fell out of the move. There was an off-by-one in the back-off, so the second attempt came at once instead of after a second. There was a header that was added again on every attempt, until the server refused the request for being too large. And there was a branch that could never be reached, lovingly commented, with a ticket number from a tracker that had been switched off before she joined the company.

"You could have rewritten it in a day," said Tom, who had read the pull request during lunch. "I could," she said, "and then we would have had a new one that nobody understands." She had kept every test that the old function had, even the strange ones, and marked the three that she believed to be wrong. Two of them were. The third turned out to guard against a proxy that answers with status 200 and an error page, which still happens about twice a month.

They shipped it on Monday, behind a flag, to one percent of the traffic. Nothing happened, which was the point. By Wednesday the graph of duplicate orders, flat but never quite at zero for as long as anyone could remember, lay exactly on the axis, and someone from support wrote to ask whether the monitoring was broken.

Please look at the failing integration tests first, then update the migration so that existing rows keep their ids. Do not change the public API, and never log the token. If the build takes longer than ten minutes, run only the tests that touch the scheduler. I also need a short note for the changelog, in plain words, saying what people have to do when they upgrade from version 2.4.
"""

CHINESE = """\
这个仓库的构建脚本已经用了很多年，没有人记得最初为什么要分成三个阶段。第一阶段下载依赖，第二阶段生成配置文件，第三阶段才真正开始编译。每当有人想要合并其中两个阶段，测试就会在别的机器上失败，于是大家只好把它恢复原样。

上周我们终于找到了原因：配置文件里写入了当前目录的绝对路径，而缓存服务器会把这个路径当作键的一部分。只要目录名不同，缓存就永远不会命中。修改的办法很简单，把绝对路径换成相对路径，然后清空一次缓存。构建时间从十二分钟降到了四分钟。

请先阅读错误日志，再决定是否需要重试。如果服务器返回的是限流错误，应当等待一段时间以后再发送请求；如果返回的是上下文过长的错误，重试没有任何意义，必须先压缩对话内容。不要在日志中记录用户的密码或者访问令牌，也不要修改公共接口的名称。

数据库的迁移分为两步。第一步新增一列，允许为空，并让程序同时写入新旧两列；第二步在所有旧数据补齐之后，再把新列改为不可为空，最后删除旧列。这样做虽然慢一些，但是任何时候都可以安全地回滚，用户也不会察觉到服务有中断。

会议结束的时候，经理问大家还有没有别的问题。小王说，文档里有好几处和实际行为不一致，新来的同事经常被误导。大家同意每个人负责一章，在月底之前检查一遍，发现错误就直接改正，不必再开会讨论。
"""

JAPANESE = """\
このリポジトリのビルド手順は何年も前に作られたもので、なぜ三つの段階に分かれているのかを覚えている人はもういません。最初の段階で依存関係を取得し、次の段階で設定ファイルを生成し、最後の段階でようやくコンパイルが始まります。二つの段階をまとめようとすると、必ず別のマシンでテストが失敗しました。

先週、ようやく原因が分かりました。設定ファイルに現在のディレクトリの絶対パスが書き込まれていて、キャッシュサーバーがそれをキーの一部として使っていたのです。ディレクトリ名が違えば、キャッシュは決して使われません。絶対パスを相対パスに変え、キャッシュを一度消しただけで、ビルド時間は十二分から四分になりました。

まずエラーログを読んでから、再試行するかどうかを決めてください。サーバーが制限のエラーを返した場合は、しばらく待ってからもう一度送信します。コンテキストが長すぎるというエラーの場合は、再試行しても意味がないので、先に会話を要約する必要があります。パスワードやアクセストークンをログに残さないでください。

データベースの移行は二回に分けて行います。一回目で新しい列を追加し、プログラムは新旧両方の列に書き込みます。古いデータがすべて埋まったら、二回目で新しい列を必須にし、最後に古い列を削除します。少し時間はかかりますが、いつでも安全に元に戻すことができ、利用者がサービスの停止に気づくこともありません。

会議の終わりに、部長がほかに質問はないかと尋ねました。田中さんは、ドキュメントの何か所かが実際の動作と違っていて、新しく入った人がよく困っていると言いました。そこで全員が一章ずつ担当し、月末までに確認して、間違いを見つけたらすぐに直すことになりました。
"""

KOREAN = """\
이 저장소의 빌드 스크립트는 아주 오래전에 만들어졌고, 왜 세 단계로 나뉘어 있는지 기억하는 사람은 이제 없습니다. 첫 번째 단계에서 의존성을 내려받고, 두 번째 단계에서 설정 파일을 만들고, 세 번째 단계에서야 비로소 컴파일이 시작됩니다. 두 단계를 합치려고 할 때마다 다른 컴퓨터에서 테스트가 실패했습니다.

지난주에 드디어 원인을 찾았습니다. 설정 파일에 현재 디렉터리의 절대 경로가 기록되어 있었고, 캐시 서버가 그 경로를 키의 일부로 사용하고 있었습니다. 디렉터리 이름이 다르면 캐시는 절대로 사용되지 않습니다. 절대 경로를 상대 경로로 바꾸고 캐시를 한 번 비웠더니 빌드 시간이 십이 분에서 사 분으로 줄었습니다.

먼저 오류 로그를 읽고 나서 다시 시도할지 결정해 주세요. 서버가 요청 제한 오류를 돌려주면 잠시 기다렸다가 다시 보내면 됩니다. 하지만 문맥이 너무 길다는 오류라면 다시 시도해도 소용이 없으므로 먼저 대화를 요약해야 합니다. 비밀번호나 접근 토큰을 로그에 남기지 말고, 공개된 인터페이스의 이름도 바꾸지 마세요.

데이터베이스 이전은 두 번에 나누어 진행합니다. 먼저 새 열을 추가하고 프로그램이 두 열에 모두 기록하게 합니다. 오래된 데이터를 모두 채운 뒤에 새 열을 필수로 바꾸고 마지막으로 예전 열을 지웁니다. 시간은 조금 더 걸리지만 언제든지 안전하게 되돌릴 수 있고, 사용자는 서비스가 멈춘 것을 알아차리지 못합니다.

회의가 끝날 무렵 팀장이 다른 질문이 있는지 물었습니다. 민수는 문서의 여러 곳이 실제 동작과 달라서 새로 온 동료들이 자주 헷갈린다고 말했습니다. 그래서 모두 한 장씩 맡아 월말까지 확인하고, 틀린 부분을 찾으면 바로 고치기로 했습니다.
"""

ARABIC = """\
كُتبت خطوات البناء في هذا المشروع قبل سنوات طويلة، ولم يعد أحد يتذكر لماذا قُسمت إلى ثلاث مراحل. في المرحلة الأولى يتم تنزيل الحزم المطلوبة، وفي المرحلة الثانية تُنشأ ملفات الإعداد، ثم تبدأ الترجمة في المرحلة الأخيرة. وكلما حاول شخص دمج مرحلتين معا فشلت الاختبارات على جهاز آخر.

في الأسبوع الماضي وجدنا السبب أخيرا. كان ملف الإعداد يحتوي على المسار الكامل للمجلد الحالي، وكان خادم التخزين المؤقت يستخدم هذا المسار جزءا من المفتاح. إذا اختلف اسم المجلد فلن يُستخدم التخزين المؤقت أبدا. استبدلنا المسار الكامل بمسار نسبي، فانخفض زمن البناء من اثنتي عشرة دقيقة إلى أربع دقائق.

يرجى قراءة سجل الأخطاء أولا ثم اتخاذ القرار بشأن إعادة المحاولة. إذا أعاد الخادم خطأ يتعلق بعدد الطلبات فيجب الانتظار قليلا قبل الإرسال مرة أخرى. أما إذا كان الخطأ أن النص أطول من المسموح به فلا فائدة من إعادة المحاولة، ويجب تلخيص المحادثة قبل ذلك. لا تكتب كلمات المرور في السجل، ولا تغير أسماء الواجهات العامة.

تتم عملية نقل قاعدة البيانات على مرحلتين. نضيف أولا عمودا جديدا ونجعل البرنامج يكتب في العمودين معا، وبعد ملء البيانات القديمة كلها نجعل العمود الجديد إلزاميا ثم نحذف العمود القديم. هذه الطريقة أبطأ قليلا، لكنها تسمح بالعودة إلى الحالة السابقة في أي وقت دون أن يلاحظ المستخدمون أي توقف في الخدمة.

في نهاية الاجتماع سأل المدير إن كانت هناك أسئلة أخرى. قال أحمد إن الوثائق لا تطابق السلوك الفعلي في عدة مواضع، وإن الزملاء الجدد يقعون في الخطأ بسببها. اتفق الجميع على أن يراجع كل واحد منهم فصلا قبل نهاية الشهر، وأن يصحح الأخطاء مباشرة دون الحاجة إلى اجتماع جديد.
"""

WRITTEN = {"english": ENGLISH, "chinese": CHINESE, "japanese": JAPANESE, "korean": KOREAN, "arabic": ARABIC}

# Not used by tools/fit_tokens.py.
MODULES = ("argparse", "csv", "dataclasses", "heapq", "shutil", "statistics", "textwrap")


def sources() -> list[str]:
    """Return the source of some modules of the standard library."""
    found = (importlib.util.find_spec(name) for name in MODULES)
    return [Path(spec.origin).read_text("utf-8") for spec in found if spec and spec.origin]


def diffs(chance: random.Random) -> list[str]:
    """Edit sources at random places and return unified diffs."""
    made = []
    for number, source in enumerate(sources()):
        before = source.splitlines(keepends=True)
        after = list(before)
        for _ in range(12):
            place = chance.randrange(len(after) - 3)
            after[place : place + chance.randrange(3)] = chance.sample(before, chance.randrange(1, 4))
        lines = difflib.unified_diff(
            before, after, f"a/src/{MODULES[number]}.py", f"b/src/{MODULES[number]}.py"
        )
        made.append("".join(lines))
    return made


def objects(chance: random.Random) -> list[str]:
    """Return JSON as tools answer it, compact and indented."""
    words = sorted({word for word in ENGLISH.split() if word.isalpha()})
    rows = [
        {
            "id": chance.getrandbits(40),
            "name": "_".join(chance.sample(words, 2)).lower(),
            "path": f"src/{chance.choice(MODULES)}.py",
            "line": chance.randrange(1, 3000),
            "score": round(chance.random(), 4),
            "ok": chance.random() < 0.5,
            "message": " ".join(chance.sample(words, 7)),
            "tags": chance.sample(words, 3),
            "parent": None,
        }
        for _ in range(120)
    ]
    return [json.dumps(rows), json.dumps(rows, indent=2), json.dumps(rows, separators=(",", ":"))]


def listings(chance: random.Random) -> list[str]:
    """Return the standard library's folders as `ls -l`, `find` and `ls` would print them."""
    root = Path(sysconfig.get_path("stdlib"))
    long, plain, names = [], [], []
    for folder in ("", "json", "email", "http", "logging", "unittest", "xml/etree", "concurrent/futures"):
        entries = sorted(path.name for path in (root / folder).iterdir())[:60]
        for entry in entries:
            size, day, hour = chance.randrange(100, 90_000), chance.randrange(1, 29), chance.randrange(24)
            long.append(
                f"-rw-r--r-- 1 root root {size:7d} Nov {day:2d} {hour:02d}:{chance.randrange(60):02d} {entry}"
            )
            plain.append(f"./lib/python3/{folder}/{entry}".replace("//", "/"))
        names += entries
    return ["\n".join(long), "\n".join(plain), "\n".join(names)]


def binary(chance: random.Random) -> list[bytes]:
    """Return random bytes, and compressed source."""
    return [
        chance.randbytes(6_000),
        chance.randbytes(6_000),
        zlib.compress("".join(sources()).encode())[:6_000],
    ]


def chunks() -> dict[str, list[str]]:
    """Return pieces of 800 characters of each kind, smaller ones of the written texts."""
    chance = random.Random(20)
    raw = binary(chance)
    texts = {
        **{kind: [text] for kind, text in WRITTEN.items()},
        "python": sources(),
        "json": objects(chance),
        "diff": diffs(chance),
        "listing": listings(chance),
        "base64": [base64.b64encode(raw[0]).decode(), base64.encodebytes(raw[1]).decode(), base64.b64encode(raw[2]).decode()],
        "hex": [raw[0].hex(), raw[1].hex(" "), "\n".join(raw[2].hex()[i : i + 64] for i in range(0, 12_000, 64))],
    }  # fmt: skip
    sizes = {"english": 400, **dict.fromkeys(("chinese", "japanese", "korean", "arabic"), 160)}
    return {
        kind: [piece for text in some for piece in cut(text, sizes.get(kind, 800))]
        for kind, some in texts.items()
    }


def cut(text: str, size: int) -> list[str]:
    """Cut a text into pieces of a size, the short end left out."""
    return [text[i : i + size] for i in range(0, len(text) - size // 2, size)]
