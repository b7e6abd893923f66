// What a page without this can do, too, done without loading it anew: a file dropped, a reply as it is written.
"use strict";

// what is told goes after a while, unless it asks for something
let telling = 0;
const toast = document.getElementById("said");
const going_away = (seconds) => {
  clearTimeout(telling);
  telling = setTimeout(() => (toast.matches(":hover, :focus-within") ? going_away(seconds) : said("")), 1000 * seconds);
};
const said = (text, { stays = true, undo = false } = {}) => {
  clearTimeout(telling);
  toast.textContent = text;
  const form = undo && document.querySelector("#lifts form")?.cloneNode(true);
  if (form) {
    const button = form.querySelector("button");
    button.textContent = "Undo";
    button.className = "";
    button.removeAttribute("id");
    button.disabled = false;
    toast.append(form);
    htmx.process(form);
  }
  if (!stays) going_away(6);
};

// what came of a button is heard and seen once: it is no part of the address
const came = document.querySelector(".problem[tabindex], .notice[tabindex]");
if (came) {
  came.focus({ preventScroll: true });
  if (toast.contains(came)) going_away(20);
  const address = new URL(location);
  for (const name of ["notice", "problem", "draft_of", "undo"]) address.searchParams.delete(name);
  history.replaceState(history.state, "", address);
}

const drop = document.getElementById("drop");
if (drop) {
  document.getElementById("drop-hint").hidden = false;
  drop.addEventListener("submit", () => said("wait" in drop.dataset ? "Sending …" : "Importing …"));
  const over = (on) => (event) => {
    event.preventDefault();
    drop.classList.toggle("over", on);
  };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => {
    over(false)(event);
    const { file } = drop.elements;
    const { files } = event.dataTransfer;
    if (files.length > 1 && !file.multiple) said("Drop one file.", { stays: false });
    else if (files.length) {
      file.files = files;
      if (!("wait" in drop.dataset)) drop.requestSubmit();
    }
  });
}

// the newest messages are in sight, and stay there while they come, unless somebody reads further up
const scroller = document.getElementById("scroller");
let atTheEnd = true;
const scrolls = () => getComputedStyle(scroller).overflowY === "auto"; // by itself; on a phone the page does
const toTheEnd = () => {
  atTheEnd = true; // what comes before this is drawn follows it, too
  if (scrolls()) scroller.scrollTop = scroller.scrollHeight;
  else scroller.parentElement.scrollIntoView({ block: "end", behavior: "instant" });
};
const follows = () => {
  if (atTheEnd) toTheEnd();
};
if (scroller && document.getElementById("live")) {
  // the browser may have gone to the place that the address names before this listens
  atTheEnd = !(location.hash && document.getElementById(location.hash.slice(1)));
  follows();
  const look = () => {
    const below = scrolls()
      ? scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight
      : scroller.parentElement.getBoundingClientRect().bottom - innerHeight;
    atTheEnd = below < 60;
  };
  // the part of the session that is in sight, on the map beside it
  let drawn = 0;
  const mark = () => {
    const seen = document.getElementById("seen");
    if (!seen) return;
    const all = [...document.querySelectorAll("#history article")];
    const { top: above, bottom: below } = scroller.getBoundingClientRect();
    const [top, bottom] = [Math.max(above, 0), Math.min(below, innerHeight)];
    const inSight = all.map((one) => one.getBoundingClientRect());
    const is = (box) => box.height && box.bottom > top && box.top < bottom;
    const count = Number(document.getElementById("map").dataset.messages);
    const at = (number) => (1000 * Math.max(0, count - all.length + number)) / Math.max(count, 1);
    const [first, last] = [at(inSight.findIndex(is)), at(inSight.findLastIndex(is) + 1)];
    seen.setAttribute("y", first);
    seen.setAttribute("height", Math.max(last - first, 4));
  };
  const soon = () => {
    cancelAnimationFrame(drawn);
    drawn = requestAnimationFrame(mark);
  };
  document.addEventListener("htmx:afterSettle", soon);
  document.addEventListener("scroll", soon, { capture: true, passive: true });
  document.addEventListener("scroll", look, { capture: true, passive: true });
  // a panel made anew moves no message: somebody may be about to press a button there
  document.addEventListener("htmx:afterSwap", ({ target }) => scroller.contains(target) && follows());
  // what is put in place begins where the page does
  document.addEventListener("htmx:configRequest", ({ detail: { headers } }) => {
    headers["foldline-first"] = document.querySelector("#history article")?.id.slice("e-".length) ?? "";
  });
  // what was asked before a button changed the history is out of date
  document.addEventListener("htmx:beforeRequest", ({ detail: { elt } }) => {
    if (elt.id !== "live") return;
    const late = (event) => elt.isConnected || event.preventDefault();
    elt.addEventListener("htmx:beforeOnLoad", late, { once: true });
  });
  // what a button changed is put in place: who reads stays where they read, and a new fold is shown
  let place = 0;
  let opened = [];
  let held = "";
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id !== "history") return;
    place = scroller.scrollTop;
    opened = [...document.querySelectorAll("#history .step[open]")].map((one) => one.id);
    held = document.activeElement?.closest("#history :is(article, .fold-line)")?.id;
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    if (event.detail.target.id !== "history") return;
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    if (held) document.getElementById(held)?.focus({ preventScroll: true });
    if (atTheEnd) toTheEnd();
    else scroller.scrollTop = place;
  });
  // the button that was pressed may have nothing more to do: then the other one is held
  let lifting = false;
  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
    if (target.id === "lifts") lifting = target.contains(document.activeElement);
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (lifting && !document.querySelector("#lifts :enabled:focus")) document.querySelector("#lifts :enabled")?.focus();
    lifting = false;
  });
  document.addEventListener("folded", () => {
    const mark = document.getElementById("edge")?.parentElement;
    mark?.classList.add("fresh");
    mark?.scrollIntoView({ block: "center" });
  });
}

// the events of a turn, read from the stream of a POST
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest = (rest + value).replaceAll("\r\n", "\n");
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(
        block
          .split("\n")
          .filter((line) => line[0] !== ":")
          .map((line) => {
            const at = line.indexOf(": ");
            return [line.slice(0, at), line.slice(at + 2)];
          }),
      );
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

const say = document.getElementById("say");
if (say) {
  const stop = document.getElementById("stop");
  const reply = document.getElementById("reply");
  const words = reply.querySelector(".text");
  const field = say.elements.text;
  const send = say.querySelector("button.main");
  const LOST = "The connection was lost. What was whole is kept.";
  // what was half written is there again behind another page
  const half = `foldline-half:${location.pathname}`;
  field.value ||= sessionStorage.getItem(half) ?? "";
  addEventListener("pagehide", () => sessionStorage.setItem(half, field.value));
  let work = null;
  let folded = false; // by itself, while the model was asked
  let failure = ""; // why no model wrote the summary
  const look = () => {
    const live = document.getElementById("live");
    if (live) htmx.trigger(live, "look");
  };
  const follow = async (response) => {
    look(); // what was said stands in the history
    for await (const [name, data] of events(response)) {
      if (name === "message.delta") {
        words.textContent += data.text;
        follows();
      }
      if (name === "message.restart" || name === "message") words.textContent = "";
      if (name === "message") look(); // it stands in the history now
      if (name === "retrying") said(`The model does not answer: asked again in ${Math.ceil(data.wait)} s.`);
      if (name === "compaction.started") said("Folding …");
      if (name === "warning" && data.kind === "summary_failed") failure = ` Code wrote the summary: ${data.text}.`;
      if (name === "compaction.committed") folded = true;
      if (name === "done") return data.how === "failed" ? data.detail : "";
    }
    return LOST;
  };
  const turn = async (body) => {
    let sent = false;
    work = new AbortController();
    words.textContent = "";
    reply.hidden = stop.hidden = false;
    send.disabled = true;
    folded = false;
    failure = "";
    said("The model answers …");
    toTheEnd();
    try {
      const response = await fetch(say.action, {
        method: "POST",
        body,
        signal: work.signal,
        headers: { accept: "text/event-stream" },
      });
      sent = response.ok && response.headers.get("content-type")?.startsWith("text/event-stream");
      if (!sent) {
        const told = await response.json().catch(() => ({}));
        throw new Error(told.detail ?? `It was not sent: the service answers ${response.status}.`);
      }
      const ended = await follow(response);
      if (ended) said(ended);
      else if (folded) said(`Answered. Older messages were folded.${failure}`, { stays: false, undo: true });
      else said("Answered.", { stays: false });
    } catch (error) {
      const stopped = error.name === "AbortError";
      if (stopped) said("Stopped. Your message is kept, the half reply is not.");
      else if (error instanceof TypeError) said(sent ? LOST : "It was not sent: the service does not answer.");
      else said(error.message);
      sent ||= stopped;
      if (!sent) field.value = [body.get("text"), field.value].filter(Boolean).join("\n\n");
    }
    work = null;
    reply.hidden = stop.hidden = true;
    send.disabled = false;
    if (sent && !document.getElementById("live")) {
      const came = new URLSearchParams({ notice: toast.firstChild.textContent });
      location = `${say.action.replace(/\/say$/, "")}?${came}`; // where it stands
    }
    look();
  };
  say.addEventListener("submit", (event) => {
    event.preventDefault();
    const goOn = event.submitter?.name === "go_on";
    const text = field.value;
    if (work || (!goOn && !text.trim())) return;
    if (!goOn) field.value = "";
    turn(new URLSearchParams(goOn ? { go_on: "yes" } : { text }));
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) say.requestSubmit();
  });
  stop.addEventListener("click", () => work && work.abort());
}

// a panel that is made anew shows open what was open, and is held where something of it was
const panel = document.getElementById("panel");
if (panel) {
  let known = new Map();
  let held = false;
  panel.addEventListener("htmx:beforeSwap", () => {
    held = panel.contains(document.activeElement);
    known = new Map([...panel.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
  });
  panel.addEventListener("htmx:afterSwap", () => {
    for (const one of panel.querySelectorAll("details[id]"))
      if (known.has(one.id)) one.open = known.get(one.id);
    if (held && !panel.contains(document.activeElement)) panel.focus({ preventScroll: true });
  });
}

for (const tab of document.querySelectorAll(".tabs a")) {
  tab.addEventListener("click", () => {
    for (const one of document.querySelectorAll(".tabs a")) one.removeAttribute("aria-current");
    tab.setAttribute("aria-current", "true");
  });
}

// what takes more than a moment says so, and can be stopped: a model may write the summary
const takesLong = (stop) => {
  const timer = setTimeout(() => {
    said("Working …");
    const button = document.createElement("button");
    button.textContent = "Cancel";
    button.addEventListener("click", () => {
      stop();
      said("Stopped.", { stays: false });
    });
    toast.append(button);
  }, 600);
  return () => clearTimeout(timer);
};
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method !== "post" || event.target === drop) return;
  takesLong(() => window.stop());
});
addEventListener("pageshow", (event) => event.persisted && said(""));
const UNREACHABLE = "The service does not answer. The page goes on when it does.";
document.addEventListener("htmx:beforeRequest", ({ detail: { target, xhr } }) => {
  if (target !== toast) return;
  said(""); // a button inside it is gone then, and htmx tells the document nothing of its request
  const inTime = takesLong(() => xhr.abort());
  xhr.addEventListener("error", () => {
    inTime();
    said(UNREACHABLE);
  });
  xhr.addEventListener("load", () => {
    inTime();
    if (xhr.status >= 400) return said(`It was not done: the service answers ${xhr.status}.`);
    close(null);
    going_away(20);
  });
});
// an open menu ends at Escape, at a click beside it, and where another one is opened
const menus = ".actions > details, .menu";
const close = (but) => {
  for (const one of document.querySelectorAll(menus)) if (!one.contains(but)) one.open = false;
};
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const held = document.activeElement?.closest(menus);
  close(null);
  held?.querySelector("summary").focus();
});
document.addEventListener("click", (event) => close(event.target));
document.addEventListener(
  "toggle",
  (event) => {
    if (!event.target.open || !event.target.matches(menus)) return;
    close(event.target);
    event.target.lastElementChild.scrollIntoView({ block: "nearest" });
  },
  true,
);
document.addEventListener("htmx:sendError", () => said(UNREACHABLE));
document.addEventListener("htmx:afterOnLoad", () => {
  if (document.getElementById("said").textContent.startsWith("The service")) said("");
});
