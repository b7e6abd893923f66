// Keys: j and k from message to message, / to search, c to write, Ctrl-K for everything that the page can do.
"use strict";

{
  const scroller = document.getElementById("scroller");
  const shown = (one) => one.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
  const stops = () => [...document.querySelectorAll("#history article, #history .fold-line")].filter(shown);

  const step = (by) => {
    const all = stops();
    const held = all.indexOf(document.activeElement?.closest("article, .fold-line"));
    const top = scroller.getBoundingClientRect().top;
    const first = all.findIndex((one) => one.getBoundingClientRect().bottom > Math.max(top, 0) + 40);
    const next = all[held < 0 ? Math.max(first, 0) : Math.min(Math.max(held + by, 0), all.length - 1)];
    if (!next) return;
    next.tabIndex = -1;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
  };

  const search = () => {
    const field = document.getElementById("recall") ?? document.getElementById("q");
    if (field) return field.focus();
    const tab = document.querySelector(".tabs a[href$='panel=recall']");
    if (!tab) return;
    const found = (event) => {
      if (event.detail.target.id !== "panel") return;
      document.removeEventListener("htmx:afterSwap", found);
      document.getElementById("recall")?.focus();
    };
    document.addEventListener("htmx:afterSwap", found);
    tab.click();
  };

  // who speaks to the machine, or trembles, switches keys that act alone off
  const SINGLE = "foldline-single-keys";
  let off = false;
  try {
    off = localStorage.getItem(SINGLE) === "off";
  } catch {} // a browser that keeps nothing
  const single = () => !off;
  const switchSingle = () => {
    off = !off;
    try {
      localStorage.setItem(SINGLE, off ? "off" : "on");
    } catch {}
  };

  // ---- all that the page can do, found by its name

  const COMMANDS = ".top nav a, .actions summary, .actions a, .actions button:not([disabled]), .tabs a, #go-on button";
  const named = (one) => (one.textContent.trim() || one.title).replace(/\s+/g, " ");

  const commands = () => {
    const found = [...document.querySelectorAll(COMMANDS)]
      .filter((one) => !one.closest(".actions form:not(#lifts form, .more > div > form)"))
      .filter((one) => !one.matches(".more > summary"))
      .map((one) => [named(one), () => run(one)]);
    const write = document.getElementById("words");
    if (write && !write.disabled) found.push(["Write to the model", () => write.focus()]);
    const next = single() ? "off" : "on";
    found.push([`Switch the keys j, k, c and / ${next}`, switchSingle]);
    return found;
  };

  const run = (one) => {
    const around = one.closest(".more");
    if (around) around.open = true;
    if (!one.matches("summary")) return one.click();
    one.parentElement.open = true;
    one.parentElement.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  };

  const palette = document.createElement("dialog");
  palette.id = "palette";
  palette.setAttribute("aria-label", "Commands");
  palette.innerHTML =
    '<input type="search" aria-label="What to do" placeholder="What to do …" autocomplete="off"><ul></ul>' +
    '<p class="quiet"><kbd>j</kbd> <kbd>k</kbd> next and previous message · <kbd>c</kbd> write · <kbd>/</kbd> search</p>';
  document.body.append(palette);
  const [asked, list] = palette.children;

  const fill = () => {
    const words = asked.value.toLowerCase().split(/\s+/);
    list.replaceChildren(
      ...commands()
        .filter(([name]) => words.every((word) => name.toLowerCase().includes(word)))
        .map(([name, does]) => {
          const [row, button] = [document.createElement("li"), document.createElement("button")];
          button.textContent = name;
          button.addEventListener("click", () => {
            palette.close();
            does();
          });
          row.append(button);
          return row;
        }),
    );
  };
  asked.addEventListener("input", fill);
  const open = () => {
    asked.value = "";
    fill();
    palette.showModal();
  };
  const opener = document.createElement("button");
  opener.className = "plain opener";
  opener.innerHTML = "Commands <kbd>Ctrl-K</kbd>";
  opener.addEventListener("click", open);
  document.querySelector(".top nav").after(opener);
  palette.addEventListener("click", (event) => {
    event.stopPropagation(); // what it opens stays open
    if (event.target === palette) palette.close();
  });
  palette.addEventListener("keydown", (event) => {
    event.stopPropagation();
    const buttons = [...list.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") (buttons[at + 1] ?? buttons[0])?.focus();
    else if (event.key === "ArrowUp") (buttons[at - 1] ?? asked).focus();
    else if (event.key === "Enter" && at < 0) buttons[0]?.click();
    else return;
    event.preventDefault();
  });

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return open();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    if (!single()) return;
    const does = {
      j: scroller && (() => step(1)),
      k: scroller && (() => step(-1)),
      c: () => document.getElementById("words")?.focus(),
      "/": search,
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  });
}
