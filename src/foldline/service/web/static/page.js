// What a page without this can do, too, done without loading it anew: a file dropped, a reply as it is written.
"use strict";

const said = (text) => { document.getElementById("said").textContent = text; };

const drop = document.getElementById("drop");
if (drop) {
  const over = (on) => (event) => { event.preventDefault(); drop.classList.toggle("over", on); };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) {
      drop.elements.file.files = event.dataTransfer.files;
      if ("wait" in drop.dataset) return;
      said("Importing …");
      drop.requestSubmit();
    }
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
      const fields = Object.fromEntries(block.split("\n").filter((line) => line[0] !== ":").map((line) => {
        const at = line.indexOf(": ");
        return [line.slice(0, at), line.slice(at + 2)];
      }));
      if (fields.event) yield [fields.event, JSON.parse(fields.data)];
    }
  }
}

const say = document.getElementById("say");
if (say) {
  const stop = document.getElementById("stop");
  const reply = document.getElementById("reply");
  const words = reply.querySelector(".text");
  let work = null;
  const turn = async (text) => {
    work = new AbortController();
    words.textContent = "";
    reply.hidden = stop.hidden = false;
    let how = "The connection was lost. What was whole is kept.";
    try {
      const response = await fetch(say.action, {
        method: "POST", body: new URLSearchParams({ text }), signal: work.signal,
        headers: { accept: "text/event-stream" },
      });
      if (!response.ok) throw new Error((await response.json()).detail);
      for await (const [name, data] of events(response)) {
        if (name === "message.delta") words.textContent += data.text;
        if (name === "message.restart") words.textContent = "";
        if (name === "compaction.started") said("Folding …");
        if (name === "compaction.committed") said("Folded.");
        if (name === "done") how = data.how === "failed" ? data.detail : "";
      }
    } catch (error) {
      how = error.name === "AbortError" ? "Stopped. Nothing half done is kept." : error.message;
    }
    said(how);
    work = null;
    reply.hidden = stop.hidden = true;
  };
  say.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = say.elements.text.value;
    if (work || !text.trim()) return;
    say.elements.text.value = "";
    turn(text);
  });
  say.elements.text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) say.requestSubmit();
  });
  stop.addEventListener("click", () => work && work.abort());
}

// the newest messages are in sight, and stay there while they come, unless somebody reads further up
const history_ = document.getElementById("history");
if (history_ && document.getElementById("live")) {
  const toTheEnd = () => { history_.scrollTop = history_.scrollHeight; };
  if (!location.hash) toTheEnd();
  let atTheEnd = true;
  history_.addEventListener("scroll", () => {
    atTheEnd = history_.scrollHeight - history_.scrollTop - history_.clientHeight < 60;
  });
  document.addEventListener("htmx:afterSwap", () => { if (atTheEnd) toTheEnd(); });
}

for (const tab of document.querySelectorAll(".tabs a")) {
  tab.addEventListener("click", () => {
    for (const one of document.querySelectorAll(".tabs a")) one.removeAttribute("aria-current");
    tab.setAttribute("aria-current", "true");
  });
}

// an open menu ends at Escape, and where another one is opened
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const one of document.querySelectorAll(".actions details[open], .menu[open]")) one.open = false;
});
document.addEventListener("toggle", (event) => {
  const menus = ".actions > details, .menu";
  if (event.target.open && event.target.matches(menus)) {
    for (const one of document.querySelectorAll(menus)) if (one !== event.target) one.open = false;
  }
}, true);
document.addEventListener("htmx:sendError", () => said("The service does not answer. The page goes on when it does."));
document.addEventListener("htmx:afterOnLoad", () => { if (!document.getElementById("stop")?.hidden) return; if (document.getElementById("said").textContent.startsWith("The service")) said(""); });
