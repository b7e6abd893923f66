// The list of sessions: commands copied, times that go on, a filter that asks while one types.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = button.dataset.copy || button.parentElement.querySelector("pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 2000);
  } catch {
    // a page over plain HTTP may not write there: the text is marked instead
    getSelection().selectAllChildren(button.parentElement.querySelector("pre") ?? button);
  }
});
document.addEventListener("htmx:afterSwap", () => {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
});

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
