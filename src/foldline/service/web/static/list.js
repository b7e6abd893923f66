// The list of sessions: commands copied, times that go on, a filter that asks while one types.
"use strict";

const show = () => {
  for (const one of document.querySelectorAll("[data-copy], [data-link], [data-print]")) one.hidden = false;
};
show();
document.addEventListener("htmx:afterSwap", show);
// a table that is put in place is seen from the column it was seen from
const columns = new Map();
document.addEventListener("htmx:beforeSwap", () => {
  for (const one of document.querySelectorAll(".scroll[id]")) columns.set(one.id, one.scrollLeft);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const [id, left] of columns) document.getElementById(id)?.scrollTo({ left, behavior: "instant" });
});
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-link], [data-print]");
  if (!button) return;
  if ("print" in button.dataset) return print();
  const place = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText("link" in button.dataset ? location.href : place.textContent);
  } catch {
    // a page over plain HTTP may not write there: the text is marked instead
    getSelection().selectAllChildren(place ?? button);
    return;
  }
  const before = button.textContent;
  if (before === "Copied") return;
  button.textContent = "Copied";
  setTimeout(() => {
    button.textContent = before;
  }, 2000);
});

// files on their way: how many of them are there, and a way to stop
const form = document.getElementById("drop");
const working = document.getElementById("working");
if (form && working) {
  const [label, bar, cancel] = working.children;
  const tell = (text) => {
    working.hidden = false;
    label.textContent = text;
  };
  let left = null;
  cancel.addEventListener("click", () => {
    if (left) left.abort();
    else window.stop();
    working.hidden = true;
    document.getElementById("said").textContent = "Stopped.";
  });
  const sent = async (file) => {
    const body = new FormData();
    body.append("file", file);
    const headers = { "hx-request": "true" };
    const answer = await fetch(form.action, { method: "POST", body, headers, signal: left.signal });
    return answer.ok ? answer.text() : `${file.name} was not imported: the service answers ${answer.status}.`;
  };
  form.addEventListener("submit", async (event) => {
    const files = [...form.elements.file.files];
    if (files.length < 2 || "wait" in form.dataset) return tell("wait" in form.dataset ? "Sending …" : "Importing …");
    event.preventDefault();
    left = new AbortController();
    const failed = [];
    let done = 0;
    bar.max = files.length;
    for (const [number, file] of files.entries()) {
      bar.value = number;
      tell(`Importing ${number + 1} of ${files.length}: ${file.name}`);
      const problem = await sent(file).catch((error) =>
        error.name === "AbortError" ? "Stopped." : `${file.name} was not imported: the service does not answer.`,
      );
      if (problem) failed.push(problem);
      else done += 1;
      if (left.signal.aborted) break;
    }
    const told = [`Imported ${done} of ${files.length} files.`, ...failed].join(" ").slice(0, 500);
    location = `${form.action.replace(/import$/, "")}?${new URLSearchParams({ notice: told })}`;
  });
}

// the same words as the service's
const ago = (at) => {
  const seconds = Math.max(0, (Date.now() - at) / 1000);
  for (const [limit, size, unit] of [
    [60, 1, "s"],
    [3600, 60, "min"],
    [86400, 3600, "h"],
  ])
    if (seconds < limit) return `${Math.floor(seconds / size)} ${unit} ago`;
  const days = Math.floor(seconds / 86400);
  if (days >= 30) return "";
  return days === 1 ? "1 day ago" : `${days} days ago`;
};
setInterval(() => {
  for (const one of document.querySelectorAll("time[data-ago]"))
    one.textContent = ago(Date.parse(one.dateTime)) || one.textContent;
}, 10_000);
