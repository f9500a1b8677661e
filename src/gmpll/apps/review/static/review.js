// The page: one row at a time, decided by keys or buttons.

import {
  acceptSure, askName, counted, definitionOf, loadDecided, loadGuidelines, showReviewer, showSummary,
  showSure, watchFilters, zoom,
} from "./dialogs.js";
import { byId, make, name, percent, renderDone, renderItem, renderList, renderProgress } from "./render.js";
import { get, getBlob, post, Refused, release, reviewer, saveToken, tabName, takeTokenFromAddress } from "./server.js";

const POLL_MILLISECONDS = 400;
const SINGLE_KEYS = "gmpll-single-keys";
const GO_ON = "gmpll-go-on"; // past the doubtful rows

takeTokenFromAddress();
const tab = await tabName();
let item = null;
let underWay = 0;
let pending = Promise.resolve();
let shownAt = Infinity; // when the row that is there was painted
let rematching = false;
let pictures = [];

// Messages

function say(message) {
  byId("announcement").textContent = message;
}

function notify(...content) {
  byId("notice").replaceChildren(...content);
  byId("notice").hidden = content.length === 0;
}

function warn(message) {
  byId("alarm").textContent = message;
  byId("alarm").hidden = !message;
}

/** Runs one action after the other. */
function act(action) {
  underWay += 1;
  markBusy();
  pending = pending.catch(() => {}).then(() => attempt(action));
  return pending;
}

async function attempt(action) {
  warn("");
  try {
    await action();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    if (error.status === 401) askToken(error.message);
    else warn(error.message);
  } finally {
    underWay -= 1;
    markBusy();
  }
}

/** Says that the row that is there will go, or is not painted yet. */
function markBusy() {
  if (underWay || shownAt === Infinity) byId("desk").setAttribute("aria-busy", "true");
  else byId("desk").removeAttribute("aria-busy");
}

/** Whether a key or a click was meant for a row before the one that is there. */
const isEarly = (event) => underWay > 0 || event.timeStamp < shownAt;

function askToken(message) {
  if (!byId("ask-token").open) byId("ask-token").showModal();
  say(message);
}

// Rows

/** Shows the next row, or asks whether to go on when the doubtful ones are done. */
async function presentNext(answer, message = "") {
  const { progress, item: next } = answer;
  const more = next !== null && !next.doubtful;
  if (next === null || (more && progress.decided && !progress.doubtful && !sessionStorage.getItem(GO_ON))) {
    renderProgress(progress);
    item = null;
    const heading = more ? "The doubtful rows are done" : "Nothing is left to decide";
    await showSummary(heading);
    renderDone(more);
    say(`${message} ${heading}.`);
    return;
  }
  present(answer, message);
}

function present(answer, message = "") {
  renderProgress(answer.progress);
  item = answer.item;
  pictures.forEach((address) => URL.revokeObjectURL(address));
  pictures = [];
  renderItem(item, { decide, open, loadImage, definitionOf });
  byId("item-heading").focus();
  scrollTo(0, 0);
  shownAt = Infinity;
  // The first frame draws the row, the next one begins when it can be seen.
  requestAnimationFrame(() => requestAnimationFrame((now) => {
    shownAt = now;
    markBusy();
  }));
  say(`${message} Row ${item.id}, ${item.candidates.length} candidates.`);
}

async function loadImage(row, image) {
  const address = URL.createObjectURL(await getBlob(`/api/images/${row}`));
  pictures.push(address);
  image.src = address;
}

const showNext = () =>
  act(async () => presentNext(await get(`/api/next?tab=${tab}${item ? `&passed=${item.row}` : ""}`)));

function open(row) {
  byId("list").close();
  return act(async () => present(await get(`/api/items/${row}`)));
}

function decide(decision, label) {
  if (item === null || underWay) return;
  return act(async () => {
    const asked = { row: item.row, version: item.version, tab, reviewer: reviewer() || "", ...decision };
    try {
      await presentNext(await post("/api/decide", asked), `Row ${item.id}: ${label}.`);
    } catch (error) {
      if (error.status !== 409) throw error;
      item = error.answer.item;
      renderItem(item, { decide, open, loadImage, definitionOf });
      byId("item-heading").focus();
      warn(`${error.message} Your choice was not written: choose again to replace the other, or go on with J.`);
    }
  });
}

function undo() {
  return act(async () => {
    const answer = await post("/api/undo", { tab });
    if (answer.item === null) warn("This tab has nothing to undo; open a row from the list of decided ones (L).");
    else {
      notify(); // what it said may be undone
      present(answer, answer.undone > 1 ? `${answer.undone} decisions undone.` : "Undone.");
    }
  });
}

// Another label

let options = [];
let chosen = 0;
let searchedFor = null; // what the options answer; the reviewer may have typed on since

async function search() {
  const query = byId("query").value.trim();
  const found = await get(`/api/labels?q=${encodeURIComponent(query)}`);
  if (query !== byId("query").value.trim()) return; // a later answer is on its way
  searchedFor = query;
  options = found.map(({ code, name: label }) => ({
    // A label that the reviewer brought has no code.
    decision: code === null ? { action: "other", name: label } : { action: "label", code },
    label,
  }));
  if (query && !found.some((label) => label.name === query)) {
    options.push({ decision: { action: "other", name: query }, label: query, isNew: true });
  }
  byId("found").replaceChildren(
    ...options.map((option, index) => {
      const line = make("li", { role: "option", id: `option-${index}` });
      line.append(...(option.isNew ? ["New label: "] : []), name(option.label, ""));
      line.addEventListener("click", () => take(index));
      return line;
    }),
  );
  choose(0);
}

function choose(index) {
  chosen = Math.min(Math.max(index, 0), options.length - 1);
  [...byId("found").children].forEach((line, i) => line.setAttribute("aria-selected", String(i === chosen)));
  if (options.length) {
    byId("query").setAttribute("aria-activedescendant", `option-${chosen}`);
    byId(`option-${chosen}`).scrollIntoView({ block: "nearest" });
  } else byId("query").removeAttribute("aria-activedescendant");
}

/** Enter may be faster than the answer: what is taken must belong to what was typed. */
async function takeChosen() {
  while (searchedFor !== byId("query").value.trim()) await search();
  take(chosen);
}

function take(index) {
  const option = options[index];
  if (!option) return;
  byId("search").close();
  decide(option.decision, option.label);
}

function openSearch() {
  if (item === null) return;
  byId("query").value = "";
  searchedFor = null;
  byId("search").showModal();
  byId("query").focus();
  search().catch((error) => warn(error.message));
}

// Lists

function showDecided() {
  return act(async () => {
    await loadDecided(open);
    byId("filters").hidden = false;
    byId("list").showModal();
  });
}

function showChanges() {
  return act(async () => {
    const changes = await get("/api/changes");
    if (changes.at === null) return warn("The rows were not matched again yet (M).");
    const cut = changes.rows.length < changes.count ? ` The surest ${changes.rows.length} are shown.` : "";
    renderList(
      {
        heading: "What matching again changed",
        summary:
          `${counted(changes.count, "label")} changed apart from the decided rows, ` +
          `with ${counted(changes.decisions, "known label")}.${cut}`,
        columns: ["Row", "Before", "After"],
        rows: changes.rows.map((line) => ({
          ...line,
          cells: [
            [name(line.before), ` ${percent(line.before_confidence)}`],
            [name(line.after), ` ${percent(line.after_confidence)}`],
          ],
        })),
      },
      open,
    );
    byId("filters").hidden = true;
    byId("list").showModal();
  });
}

// Matching again, and applying the decisions

function applyDecisions() {
  if (rematching) return notify("The rows are being matched already.");
  return act(async () => {
    renderProgress(await post("/api/apply", {}));
    followRun();
  });
}

function matchAgain() {
  if (rematching) return notify("The rows are being matched already.");
  return act(async () => {
    renderProgress(await post("/api/rematch", {}));
    followRun();
  });
}

async function followRun() {
  if (rematching) return;
  rematching = true;
  const busy = ["match-again", "apply", "apply-now"].map(byId);
  busy.forEach((button) => button.setAttribute("aria-disabled", "true"));
  const clock = make("span");
  notify("Matching with your decisions. You can go on deciding. ", make("progress", { "aria-label": "Matching" }), clock);
  try {
    for (;;) {
      const progress = await get("/api/state");
      renderProgress(progress);
      const run = progress.run;
      if (run.state === "failed") {
        notify();
        warn(`${run.what === "apply" ? "The results were not changed" : "Matching again failed"}: ${run.message}`);
        return;
      }
      if (run.state !== "running" && run.what === "apply") return notify(run.message);
      if (run.state !== "running") return await tellChanges(run);
      // Seen but not read out every time: only the first words of the notice are news.
      clock.textContent = `${run.seconds.toFixed(0)} s`;
      clock.setAttribute("aria-hidden", "true");
      await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
    }
  } catch (error) {
    notify();
    warn(error.message);
  } finally {
    rematching = false;
    busy.forEach((button) => button.removeAttribute("aria-disabled"));
  }
}

async function tellChanges(run) {
  const changes = await get("/api/changes");
  const button = make("button", { type: "button", text: "Show them" });
  button.addEventListener("click", showChanges);
  const told = `Matched again in ${run.seconds} s: ${counted(changes.count, "label")} changed. `;
  notify(told, ...(changes.count ? [button] : []));
  // The row on the desk stays as it is: its candidates must not change places under a finger.
}

// Export

function download(format, file) {
  return act(async () => {
    const address = URL.createObjectURL(await getBlob(`/api/export/${format}`));
    const link = make("a", { href: address, download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    byId("export").close();
    notify(`${file} was saved to your downloads.`);
  });
}

// Keys and buttons

const openDialog = (id) => () => byId(id).showModal();

const actions = {
  "/": openSearch,
  n: () => decide({ action: "none" }, "none of the candidates"),
  s: () => decide({ action: "skip" }, "skipped"),
  u: undo,
  j: () => showNext(),
  y: () => item?.suggested && decide({ action: "label", code: item.suggested.code }, item.suggested.name),
  z: zoom,
  m: matchAgain,
  a: applyDecisions,
  b: () => act(showSure),
  g: () => byId("show-guide").hidden || byId("guide").showModal(),
  c: showChanges,
  l: showDecided,
  e: openDialog("export"),
  "?": openDialog("help"),
};

const buttons = {
  other: "/", none: "n", skip: "s", undo: "u", "undo-last": "u", next: "j", "match-again": "m",
  "show-changes": "c", "show-decided": "l", "show-export": "e", "show-help": "?", zoom: "z", apply: "a",
  "apply-now": "a", "show-sure": "b", "sure-now": "b", "show-guide": "g", "welcome-guide": "g", "export-now": "e",
};
for (const [id, key] of Object.entries(buttons)) byId(id).addEventListener("click", () => actions[key]());
for (const button of document.querySelectorAll("[data-format]")) {
  button.addEventListener("click", () => download(button.dataset.format, button.dataset.file));
}

// What is pressed while a decision is under way was not meant for the next row, nor is the second
// click of two.
const ABOUT_ROW = /^[0-9/nsjyz]$/;
byId("desk").addEventListener("click", (event) => {
  const meant = event.target.closest("#undo") || !(isEarly(event) || event.detail > 1);
  if (!meant) event.stopPropagation();
}, true);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (document.querySelector("dialog[open]") || !byId("single-keys").checked) return;
  const key = event.key.toLowerCase();
  if (item !== null && isEarly(event) && ABOUT_ROW.test(key)) return event.preventDefault();
  const digit = /^[0-9]$/.test(key) ? (Number(key) + 9) % 10 : null;
  const given = digit === null || item === null ? undefined : item.candidates[digit];
  if (given) decide({ action: "label", code: given.code }, given.name);
  else if (actions[key]) actions[key]();
  else return;
  event.preventDefault();
});

byId("who").addEventListener("click", () => askName().catch((error) => warn(error.message)));
byId("go-on-now").addEventListener("click", () => {
  sessionStorage.setItem(GO_ON, "yes");
  showNext();
});
byId("accept").addEventListener("click", (event) => {
  event.preventDefault();
  act(async () => {
    const answer = await acceptSure(tab);
    notify(`${counted(answer.accepted, "row")} accepted together. Undo (U) takes them all back.`);
    await presentNext(answer);
  });
});
watchFilters(open, (error) => warn(error.message));

// A row that nobody looks at any more is free for others.
addEventListener("pagehide", () => release(tab));
addEventListener("pageshow", (event) => event.persisted && showNext());

byId("query").addEventListener("input", () => search().catch((error) => warn(error.message)));
byId("query").addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) choose(chosen + steps[event.key]);
  else if (event.key === "Enter") takeChosen().catch((error) => warn(error.message));
  else return;
  event.preventDefault();
});

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  saveToken(byId("token").value);
  byId("token").value = "";
  byId("ask-token").close();
  start();
});

byId("single-keys").checked = localStorage.getItem(SINGLE_KEYS) !== "off";
byId("single-keys").addEventListener("change", (event) => {
  localStorage.setItem(SINGLE_KEYS, event.target.checked ? "on" : "off");
});

// Counts move on while another tab decides.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) get("/api/state").then(renderProgress, () => {});
});

async function start() {
  showReviewer();
  await loadGuidelines().catch(() => {}); // without the token it is asked for next
  await showNext();
  const progress = await get("/api/state").catch(() => null);
  if (progress?.run.state === "running") followRun();
  if (progress && reviewer() === null) askName().catch(() => {});
}

start();
