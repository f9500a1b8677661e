// Talking to the server: the token, and requests that carry it.

const TOKEN = "gmpll-token";
const TAB = "gmpll-tab";
const REVIEWER = "gmpll-reviewer";

/** Raised for every answer that is not a success; `answer` is the server's JSON. */
export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error || `The server answered ${status}.`);
    this.status = status;
    this.answer = answer;
  }
}

/** The token leaves the address at once, so it is neither bookmarked nor copied by accident. */
export function takeTokenFromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    saveToken(token);
    history.replaceState(null, "", location.pathname);
  }
}

/** Accepts the token alone or the whole address that ends in it. */
export function saveToken(token) {
  sessionStorage.setItem(TOKEN, token.trim().split("token=").pop());
}

/**
 * The name of this tab: undo goes back over its own decisions, and a reload keeps it. A duplicated
 * tab inherits the storage; the lock, held while the page lives, tells that the name is taken.
 */
export async function tabName() {
  const kept = sessionStorage.getItem(TAB);
  if (kept && (await isFree(kept))) return kept;
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  const drawn = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  await isFree(drawn);
  sessionStorage.setItem(TAB, drawn);
  return drawn;
}

function isFree(name) {
  if (!navigator.locks) return Promise.resolve(true); // not a secure context: told to serve others
  return new Promise((resolve) => {
    navigator.locks.request(`gmpll-${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock && new Promise(() => {});
    });
  });
}

/** The name of who decides; null before anybody was asked. */
export const reviewer = () => localStorage.getItem(REVIEWER);
export const saveReviewer = (name) => localStorage.setItem(REVIEWER, name.trim());

async function request(path, options = {}) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(TOKEN) || ""}` };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new Refused(0, {
      error: "The server does not answer: nothing was written. Is gmpll review still running?",
    });
  }
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => ({})));
  return response;
}

export const get = async (path) => (await request(path)).json();
export const getBlob = async (path) => (await request(path)).blob();
export const post = async (path, content, options = {}) =>
  (await request(path, { ...options, method: "POST", body: JSON.stringify(content) })).json();

/** Gives the row of this tab to others; the browser sends it even while the page goes away. */
export const release = (tab) => post("/api/release", { tab }, { keepalive: true }).catch(() => {});
