// What opens over the page: the reviewer's name, guidelines, sure rows, pictures, decided rows.

import { byId, describeDecision, make, name, percent, renderList } from "./render.js";
import { get, post, reviewer, saveReviewer } from "./server.js";

export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// The name

export function showReviewer() {
  byId("who").replaceChildren("You: ", name(reviewer() || "no name", ""));
}

/** Asks for a name; those who decided here before can be chosen. */
export async function askName() {
  byId("reviewer").value = reviewer() || "";
  byId("welcome").showModal();
  byId("reviewer").focus();
  const { reviewers } = await get("/api/decisions");
  byId("reviewers").replaceChildren(...reviewers.map((known) => make("option", { value: known.name })));
}

byId("welcome").addEventListener("close", () => {
  saveReviewer(byId("reviewer").value);
  showReviewer();
});

// Guidelines

let definitions = {};

export const definitionOf = (label) => (Object.hasOwn(definitions, label) ? definitions[label] : "");

/** The server sends names of elements and text; no other element than these is ever made. */
const ELEMENTS = new Set([
  "h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "hr",
  "strong", "em", "code", "s", "table", "thead", "tbody", "tr", "th", "td",
]);

function element(node) {
  if (typeof node === "string") return node;
  const [tag, children] = node;
  // The dialog has the second heading of the page, so those of the file begin below it.
  const level = /^h[1-6]$/.test(tag) ? `h${Math.min(6, Number(tag[1]) + 2)}` : tag;
  return make(ELEMENTS.has(tag) ? level : "span", {}, ...children.map(element));
}

export async function loadGuidelines() {
  const answer = await get("/api/guidelines");
  definitions = answer.definitions;
  byId("guide-text").replaceChildren(...answer.nodes.map(element));
  byId("show-guide").hidden = answer.nodes.length === 0;
  byId("welcome-guide").hidden = answer.nodes.length === 0;
}

// Very sure rows

export async function showSure() {
  const limits = await get("/api/sure");
  byId("limits").replaceChildren(
    ...limits.map(({ at_least, rows, wrong }, index) => {
      const choice = make("input", { type: "radio", name: "limit", value: String(at_least) });
      choice.checked = index === 0;
      choice.disabled = rows === 0;
      const number = wrong < 0.5 ? "hardly any" : `about ${Math.round(wrong)}`;
      const about = wrong === null || rows === 0 ? "" : `, ${number} of them wrong`;
      return make("li", {}, make("label", {}, choice, ` at least ${percent(at_least)}: ${counted(rows, "row")}${about}`));
    }),
  );
  const first = byId("limits").querySelector("input:not(:disabled)");
  if (first) first.checked = true;
  byId("accept").disabled = first === null;
  byId("sure").showModal();
}

export async function acceptSure(tab) {
  const limit = byId("limits").querySelector("input:checked");
  byId("sure").close();
  return post("/api/accept", { tab, reviewer: reviewer() || "", at_least: Number(limit.value) });
}

// Pictures

export function zoom() {
  const image = byId("image");
  if (byId("picture").hidden || !image.src) return;
  byId("zoomed-image").src = image.src;
  byId("zoomed-image").alt = image.alt;
  byId("zoomed").showModal();
}

byId("zoomed-image").addEventListener("click", () => byId("zoomed-image").classList.toggle("full"));

// Decided rows

const share = (part, whole) => `${part} of ${whole} (${percent(part / whole)})`;

function figures({ reviewers, pairs }) {
  const told = reviewers.map(({ name: who, decided, compared, agreed }) => {
    const model = compared ? `, agrees with the model in ${share(agreed, compared)}` : "";
    return [name(who || "without a name", ""), `: ${decided} decided${model}`];
  });
  const alike = pairs.map(({ names, rows, agreed }) => [
    name(names[0] || "without a name", ""), " and ", name(names[1] || "without a name", ""),
    `: alike in ${share(agreed, rows)} that both decided`,
  ]);
  byId("figures").replaceChildren(...[...told, ...alike].map((line) => make("li", {}, ...line)));
}

function fillChoices(id, values, all) {
  const select = byId(id);
  const chosen = select.value;
  const option = (value, text) => make("option", { value, text });
  select.replaceChildren(option("", all), ...values.map(([value, text]) => option(value, text)));
  select.value = chosen;
  if (select.selectedIndex < 0) select.value = "";
}

const NOBODY = "\u0000";
let lastAsked = 0;

/** Shows what was decided, as far as the filters let it through. */
export async function loadDecided(open) {
  const asked = new URLSearchParams();
  const values = { label: byId("filter-label").value, doubt: byId("filter-doubt").value, text: byId("filter-text").value };
  for (const [key, value] of Object.entries(values)) if (value) asked.set(key, value);
  const who = byId("filter-reviewer").value;
  if (who) asked.set("reviewer", who === NOBODY ? "" : who);
  const number = ++lastAsked;
  const found = await get(`/api/decisions?${asked}`);
  if (number !== lastAsked) return; // a later answer is on its way
  fillChoices("filter-label", found.labels.map((label) => [label, label]), "Any label");
  const names = found.reviewers.map((known) => [known.name || NOBODY, known.name || "without a name"]);
  fillChoices("filter-reviewer", names, "Anybody");
  figures(found);
  const cut = found.rows.length < found.count ? ` The newest ${found.rows.length} are shown.` : "";
  renderList(
    {
      heading: "Decided rows",
      summary: found.count
        ? `${counted(found.count, "decision")}, newest first. Open a row to decide it again.${cut}`
        : asked.size ? "No decision is like that." : "Nothing is decided yet.",
      columns: ["Row", "Decision", "By", "The model said", "When"],
      rows: found.rows.map((line) => ({
        ...line,
        cells: [
          [...describeDecision(line.decision), ...(line.holds ? [] : [" (replaced)"])],
          [name(line.decision.by || "no name", "")],
          [name(line.found ?? "", "")],
          [new Date(line.decision.at).toLocaleString()],
        ],
      })),
    },
    open,
  );
}

export function watchFilters(open, failed) {
  for (const id of ["filter-label", "filter-reviewer", "filter-doubt"]) {
    byId(id).addEventListener("change", () => loadDecided(open).catch(failed));
  }
  byId("filter-text").addEventListener("input", () => loadDecided(open).catch(failed));
}

// How far the review is

export async function showSummary(heading) {
  const told = await get("/api/summary");
  byId("done-heading").textContent = heading;
  const lines = [
    `${counted(told.decided, "row")} decided: the model was right in ${told.agreed}, ${counted(told.changed, "label")} changed.`,
    `${counted(told.left, "row")} with more than one possible label ${told.left === 1 ? "is" : "are"} not decided.`,
  ];
  if (told.wrong_left !== null) lines.push(`About ${counted(Math.round(told.wrong_left), "wrong label")} ${Math.round(told.wrong_left) === 1 ? "is" : "are"} left, as far as the model can tell.`);
  byId("summary").replaceChildren(...lines.map((text) => make("li", { text })));
  byId("result-folder").textContent = told.folder;
}
