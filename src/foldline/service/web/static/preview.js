// The preview of a fold: messages found by their words, and what those that are ticked come to.
"use strict";

// the messages of a preview that hold some words
const filter = document.getElementById("filter");
if (filter) {
  const rows = [...document.querySelectorAll(".pick li:has(input)")].map((one) => [
    one,
    one.textContent.toLowerCase(),
  ]);
  filter.hidden = false;
  filter.addEventListener("input", () => {
    for (const [row, text] of rows) {
      row.hidden = !text.includes(filter.value.toLowerCase());
      if (filter.value && !row.hidden) row.closest("details").open = true;
    }
    const shown = rows.filter(([row]) => !row.hidden).length;
    document.getElementById("filtered").textContent = filter.value ? `${shown} of ${rows.length} shown.` : "";
  });
  filter.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
}

// how many of them go, and how many stay; what that comes to in tokens; what was edited stays at Back
const going = document.getElementById("going");
if (going) {
  const form = document.getElementById("fold");
  const [go, stay] = [Number(going.dataset.go), Number(going.dataset.stay)];
  const { after, usable } = document.getElementById("bars").dataset;
  const byHand = document.getElementById("by-hand");
  const ticks = () => [...form.querySelectorAll(".pick input:checked:not(:disabled)")];
  const count = () => {
    const ticked = ticks();
    const tokens = ticked.reduce((sum, one) => sum + Number(one.dataset.tokens), 0);
    going.textContent = `Of ${go + stay} messages, ${go - ticked.length} go and ${stay + ticked.length} stay.`;
    const [whole, most] = [Number(after) + tokens, Math.max(Number(usable), 1)];
    const share = Math.round((100 * whole) / most);
    document.getElementById("after").textContent =
      `${tokens ? "about " : ""}${whole.toLocaleString("en")} tokens, ${share}% of the usable tokens`;
    byHand.setAttribute("width", Math.min((100 * tokens) / most, 100 - Number(byHand.getAttribute("x"))));
  };
  const kept = `foldline:${location.pathname}`;
  const known = JSON.parse(sessionStorage.getItem(kept) ?? "null");
  if (known) {
    if (form.elements.summary) form.elements.summary.value = known.summary;
    for (const one of form.querySelectorAll(".pick input:not(:disabled)")) {
      one.checked = known.ticked.includes(one.value);
      one.closest("details").open ||= one.checked;
    }
    count();
  }
  form.addEventListener("input", (event) => {
    if (event.target.type === "search") return;
    count();
    const edits = { summary: form.elements.summary?.value, ticked: ticks().map((one) => one.value) };
    sessionStorage.setItem(kept, JSON.stringify(edits));
  });
}
