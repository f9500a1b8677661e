// From data to elements. Names come from the data, so they are only ever set as text.

export const byId = (id) => document.getElementById(id);
export const percent = (share) => `${Math.round(100 * share)} %`;

/** Makes an element; `<bdi>` keeps a name's writing direction to itself. */
export function make(tag, { text, className, ...attributes } = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const name = (text, className = "name") => make("bdi", { text, className });

function show(id, wanted) {
  byId(id).hidden = !wanted;
  return byId(id);
}

export function renderProgress(progress) {
  byId("source").textContent = `${progress.source || "Table"}, ${progress.rows} rows, ${progress.ambiguous} ambiguous`;
  byId("progress").max = Math.max(progress.decided + progress.doubtful, 1);
  byId("progress").value = progress.decided;
  const skipped = progress.skipped ? `, ${progress.skipped} skipped` : "";
  byId("counts").textContent =
    `${progress.decided} decided${skipped}, ${progress.doubtful} doubtful ${progress.doubtful === 1 ? "row" : "rows"} left`;
  show("show-changes", progress.rematched_at);
  byId("meaning").textContent = progress.calibrated
    ? "The percentage is how probably a label is right: of labels at 80 %, about 8 in 10 are."
    : "The percentage says how strongly similar rows speak for a label; it is no probability.";
}

export function renderItem(item, { decide, open, loadImage, definitionOf }) {
  show("done", false);
  show("desk", true);
  byId("item-heading").replaceChildren("Row ", name(item.id, ""));
  renderStanding(item.decision);
  const text = show("text", item.text !== null);
  text.textContent = item.text ?? "";
  text.scrollTop = 0;
  renderPicture(item, loadImage);
  const fields = show("fields", item.fields.length);
  fields.replaceChildren(
    ...item.fields.map((field) =>
      make("div", {}, make("dt", { text: field.name }), make("dd", { text: field.value })),
    ),
  );
  byId("candidates").replaceChildren(
    ...item.candidates.map((c, i) => candidate(c, i, decide, definitionOf(c.name))),
  );
  renderSuggestion(item.suggested, decide);
  byId("neighbors").replaceChildren(...item.neighbors.map((n) => neighbor(n, open, loadImage)));
}

function renderStanding(decision) {
  const standing = show("standing", decision);
  if (!decision) return;
  const by = decision.by ? [" by ", name(decision.by, "")] : [];
  const what = decision.action === "skip" ? ["Skipped before", ...by] : ["Decided", ...by, ": ", ...describeDecision(decision)];
  standing.replaceChildren(...what, ". Choose again to replace this.");
}

export function describeDecision({ action, label }) {
  if (action === "skip") return ["skipped"];
  return [action === "none" ? "none of the candidates" : name(label)];
}

function renderSuggestion(suggested, decide) {
  const place = show("suggestion", suggested);
  if (!suggested) return;
  const sure = suggested.outside > 0.994 ? "over 99 %" : percent(suggested.outside);
  if (suggested.listed) {
    const told = `Nobody gave the label that is probably right (${sure}). Similar rows say: `;
    place.replaceChildren(make("p", { className: "quiet", text: told }, name(suggested.name)));
    return;
  }
  const button = make(
    "button", { type: "button", className: "candidate suggested", id: "take-suggested" },
    make("kbd", { text: "Y" }),
    make("span", {}, "Similar rows say: ", name(suggested.name)),
  );
  button.addEventListener("click", () => decide({ action: "label", code: suggested.code }, suggested.name));
  const told = `The right label is probably missing here (${sure}).`;
  place.replaceChildren(make("p", { className: "quiet", text: told }), button);
}

function renderPicture(item, loadImage) {
  show("picture", item.image !== null);
  byId("zoom").setAttribute("aria-label", `Enlarge the picture of row ${item.id}`);
  const image = byId("image");
  image.removeAttribute("src");
  byId("image-name").textContent = item.image ?? "";
  if (item.image === null) return;
  image.alt = `Picture of row ${item.id}`;
  loadImage(item.row, image).catch((error) => {
    byId("image-name").textContent = `${item.image}: ${error.message}`;
  });
}

function candidate(given, index, decide, definition) {
  const key = index < 10 ? make("kbd", { text: String((index + 1) % 10) }) : make("span");
  const bar = make("span", { className: "bar", "aria-hidden": "true" });
  bar.style.width = `${100 * given.confidence}%`;
  const votes = given.votes === null ? "" : `${given.votes} vote${given.votes === 1 ? "" : "s"}, `;
  const share = make("span", { className: "share", text: `${votes}${percent(given.confidence)}` });
  if (given.found) share.prepend(make("span", { className: "tag", text: "matched" }), " ");
  const button = make("button", { type: "button", className: "candidate" }, key, name(given.name), share, bar);
  if (given.found) button.setAttribute("aria-current", "true");
  if (definition) button.append(make("span", { className: "definition", text: definition }));
  button.addEventListener("click", () => decide({ action: "label", code: given.code }, given.name));
  return make("li", {}, button);
}

const ORIGINS = { input: "given", matching: "matched" };
const origin = (other) => ORIGINS[other.origin] ?? `decided by ${other.by || "a reviewer"}`;

function neighbor(other, open, loadImage) {
  const fill = make("span");
  fill.style.width = `${100 * other.weight}%`;
  const track = make("span", { className: "track", "aria-hidden": "true" }, fill);
  const weight = make("span", { className: "weight", text: percent(other.weight) }, track);
  const about = make(
    "span", {},
    name(other.label ?? "none of the candidates"),
    make("span", { className: "quiet", text: `${origin(other)}, row ` }),
    name(other.id, "quiet"),
    make("span", { className: "excerpt", text: other.excerpt }),
  );
  const button = make("button", { type: "button", className: "neighbor" }, about, weight);
  if (other.has_image) {
    const image = make("img", { alt: "" });
    button.classList.add("pictured");
    button.prepend(image);
    loadImage(other.row, image).catch(() => image.remove());
  }
  button.addEventListener("click", () => open(other.row));
  return make("li", {}, button);
}

/** Shows the summary; there may be more to go on with. */
export function renderDone(more) {
  show("desk", false);
  show("done", true);
  show("go-on", more);
  show("nothing-left", !more);
  byId("done-heading").focus();
}

/** Fills the dialog of lists; every row can be opened. */
export function renderList({ heading, summary, columns, rows }, open) {
  byId("list-heading").textContent = heading;
  byId("list-summary").textContent = summary;
  byId("list-head").replaceChildren(...columns.map((text) => make("th", { scope: "col", text })));
  byId("list-body").replaceChildren(
    ...rows.map(({ row, id, excerpt, cells }) => {
      const button = make("button", { type: "button" }, name(id));
      button.addEventListener("click", () => open(row));
      const about = make("td", {}, button, make("span", { className: "excerpt", text: excerpt }));
      return make("tr", {}, about, ...cells.map((cell) => make("td", {}, ...cell)));
    }),
  );
}
