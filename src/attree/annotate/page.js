// The page: what is selected, what is asked of the server, what it answers.

import { curve, draw, nameOf } from "/page.tree.js";

const byId = (id) => document.getElementById(id);
const tree = byId("tree"), row = byId("words"), editor = byId("editor");
let state = null, drawn = null, busy = false;
// selected words [start, end); `anchor` is where a selection of words began; `node` is a phrase
// how the tree is shown, kept for the next sentence and the next session
const view = { side: false, tags: false, zoom: 1, ...remembered() };
let picked = { start: 0, end: 1, anchor: 0, node: false };

function remembered() {
  try { return JSON.parse(localStorage.getItem("attree-view")) ?? {}; } catch { return {}; }
}

function say(text) { byId("said").textContent = ""; byId("said").textContent = text; }

function warn(text) {
  byId("message").hidden = !text;
  byId("message").textContent = text || "";
}

// ---- talking to the server

async function ask(path, body) {
  try {
    const answer = await fetch(path, body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const found = answer.headers.get("content-type")?.startsWith("application/json") ? await answer.json() : { error: await answer.text() };
    return { ok: answer.ok, found };
  } catch {
    return { ok: false, found: { error: "attree annotate does not answer. If it was ended, start it again: what was accepted is saved." } };
  }
}

async function act(action, more = {}) {
  if (busy || !state) return;
  busy = true;
  document.body.setAttribute("aria-busy", "true");
  const { ok, found } = await ask("/act", { action, version: state.version, ...more });
  busy = false;
  document.body.removeAttribute("aria-busy");
  if (!ok) {
    warn(found.error);
    if (found.state) show(found.state);
    return;
  }
  warn("");
  const before = state.sentence;
  show(found, more.to ? { start: more.to[0], end: more.to[1] } : picked);
  told(action, before);
}

function told(action, before) {
  const same = before && state.sentence && before.line === state.sentence.line && before.words.join(" ") === state.sentence.words.join(" ");
  const words = { accept: "Saved.", skip: "Skipped.", undo: "Undone." };
  const now = state.sentence ? (same ? `${state.sentence.nodes.length} phrases` : `Sentence: ${state.sentence.words.join(" ")}`) : "All sentences are done.";
  say(`${words[action] || `${action} done.`} ${now}`);
}

async function watch() {
  while (state?.training) {
    await new Promise((done) => setTimeout(done, 700));
    const { ok, found } = await ask("/state");
    if (!ok) return;
    if (busy) continue;
    if (found.version !== state.version) show(found, picked);
    else { state = { ...found, sentence: state.sentence }; header(); labels(); }
    if (!found.training) say(trainedLine());
  }
}

// ---- showing

const counted = (count, thing) => `${count} ${thing}${count === 1 ? "" : "s"}`;

function trainedLine() {
  if (state.training_failed) return `Training failed: ${state.training_failed}`;
  const { trees, seconds, took_over, scores } = state.trained;
  if (!trees) return "";
  const f1 = scores ? ` (labelled F1 ${scores.map((one) => one.toFixed(0)).join(" → ")} on trees that neither had learnt from)` : "";
  return took_over ? `Proposals by ${state.parser}, trained on ${counted(trees, "tree")} in ${seconds.toFixed(1)} s${f1}` : `Proposals by ${state.parser} still: trained on ${counted(trees, "tree")} it did no better${f1}`;
}

function header() {
  const passed = Object.entries(state.passed).map(([name, count]) => `${count} ${name.replace("_", " ")}`);
  byId("progress").textContent = `${counted(state.saved, "tree")} saved` + (passed.length ? ` · passed over: ${passed.join(", ")}` : "");
  byId("proposer").textContent = state.training ? "Training on your trees …" : trainedLine() || `Proposals by ${state.parser}`;
}

function labels() {
  const group = byId("labels");
  group.replaceChildren(...state.labels.slice(0, 24).map(({ name: label, key }) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    if (key) button.dataset.key = key;
    button.addEventListener("click", () => setLabel(label));
    return button;
  }));
  byId("tags").replaceChildren(...state.tags.map((tag) => { const one = document.createElement("option"); one.value = tag; return one; }));
}

function show(next, keep) {
  const fresh = !state?.sentence || !next.sentence || state.sentence.words.join(" ") !== next.sentence.words.join(" ");
  state = next;
  header();
  labels();
  curve(byId("curve"), byId("curve-said"), state.curve);
  const { sentence } = state;
  byId("where").textContent = sentence ? `${sentence.file}, line ${sentence.line}` + (sentence.edits ? ` · ${counted(sentence.edits, "edit")}` : "")
    : "All sentences are done. End attree annotate with Ctrl-C: it says what comes next.";
  byId("pane").hidden = !sentence;
  if (sentence) {
    redraw();
    if (fresh || !keep) {
      select(0, sentence.words.length, { focus: true, scroll: false });
      byId("pane").scrollLeft = drawn.dir === "ltr" ? 0 : tree.scrollWidth;
      byId("pane").scrollTop = view.side ? 0 : tree.scrollHeight;
    } else select(keep.start, keep.end, { focus: true });
  } else tools();
  if (state.training) watch();
}

function redraw() {
  drawn = draw(tree, state.sentence, view);
  for (const button of document.querySelectorAll("[data-edge]")) {
    const back = button.dataset.by === "-1";
    button.textContent = view.side ? (back ? "▴" : "▾") : back === (drawn.dir === "ltr") ? "◂" : "▸";
  }
  for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String(view[button.dataset.view]));
}

function look(change) {
  Object.assign(view, change);
  try { localStorage.setItem("attree-view", JSON.stringify(view)); } catch { /* it is shown so until the page is left */ }
  if (!state?.sentence) return;
  const on = document.activeElement.id, focus = tree.contains(document.activeElement);
  redraw();
  select(picked.start, picked.end, { words: !picked.node, anchor: picked.anchor, focus, on: focus ? on : null });
}

function zoom(by) {
  if (by) return look({ zoom: Math.min(2, Math.max(.3, Math.round((view.zoom + by * .1) * 10) / 10)) });
  const pane = byId("pane");
  for (let step = 20; step >= 3; step--) {  // text does not shrink in proportion, so it is tried
    look({ zoom: step / 10 });
    if (step <= 10 && tree.scrollWidth <= pane.clientWidth && tree.scrollHeight <= pane.clientHeight + 1) return;
  }
}

const isNode = (start, end) => state.sentence.nodes.some((node) => node.start === start && node.end === end);

function select(start, end, { focus = false, scroll = true, words = false, anchor = start, on = null } = {}) {
  const count = state.sentence.words.length;
  end = Math.min(end, count);
  start = Math.max(0, Math.min(start, end - 1));
  const node = !words && isNode(start, end);
  picked = { start, end, anchor, node };
  tree.querySelectorAll(".handle").forEach((old) => old.remove());
  for (const one of tree.querySelectorAll("[role=treeitem]")) {
    const at = one.id[0] === "w" ? Number(one.id.slice(1)) : -1;
    const lit = at >= 0 ? start <= at && at < end : node && one.id === nameOf(picked);
    one.classList.toggle("in", lit);
    one.setAttribute("aria-selected", String(lit));
    one.tabIndex = -1;
  }
  const current = byId(on ?? (node ? nameOf(picked) : `w${start}`));
  current.tabIndex = 0;
  if (focus) current.focus({ preventScroll: true });
  if (focus && scroll) current.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (node) handles();
  tools();
}

function handles() {
  const { start, end } = picked;
  if (end - start === state.sentence.words.length) return;
  for (const [edge, word] of [["start", start], ["end", end - 1]]) {
    const handle = document.createElement("div"), on = byId(`w${word}`);
    handle.className = "handle";
    handle.dataset.handle = edge;
    if (view.side) handle.style[edge === "start" ? "top" : "bottom"] = "-.5rem";
    else handle.style[(edge === "start") === (drawn.dir === "ltr") ? "left" : "right"] = "-.7rem";
    on.append(handle);
  }
}

function tools() {
  const there = Boolean(state.sentence), count = there ? state.sentence.words.length : 0;
  const { start, end, node } = picked, whole = end - start === count;
  const selected = { words: there && end - start > 1, new: there && !node, inner: there && node && !whole };
  for (const button of document.querySelectorAll("[data-do]")) button.disabled = !button.dataset.needs.split(" ").every((need) => selected[need]);
  for (const button of document.querySelectorAll("[data-edge]")) button.disabled = !there || (node && whole);
  for (const button of document.querySelectorAll("[data-whole]")) button.disabled = button.dataset.whole === "undo" ? !state.can_undo : !there;
  for (const one of byId("labelling").querySelectorAll("input, button")) one.disabled = !there;
  const found = there && node && state.sentence.nodes.find((one) => one.start === start && one.end === end);
  const inside = there ? state.sentence.words.slice(start, end) : [];
  const text = (inside.length > 12 ? [...inside.slice(0, 6), "…", ...inside.slice(-4)] : inside).join(" ");
  const about = found ? [found.label || "no label", found.fixed ? "settled" : found.given ? "as given" : "proposed", found.weak !== null && `weak: ${Math.round(100 * found.weak)} % likely`].filter(Boolean).join(", ")
    : end - start > 1 ? "no phrase yet: Join, or give it a label" : "a word: Shift and arrows, or drag, to select more";
  const shown = document.createElement("bdi");
  shown.textContent = text;
  byId("selected").replaceChildren(...(there ? ["Selected: ", shown, ` — ${about}`] : []));
  byId("tagging").hidden = !there || !view.tags || end - start !== 1;
  if (there && document.activeElement !== byId("tag")) byId("tag").value = state.sentence.tags[start].tag;
  if (document.activeElement !== byId("label")) byId("label").value = found ? found.label : "";
}

// ---- corrections

const span = () => ({ start: picked.start, end: picked.end });

function setLabel(label) { act("label", { ...span(), label }); }

function move(edge, by) {
  const to = { ...span() };
  to[edge] += by;
  if (to.start < 0 || to.end > state.sentence.words.length || to.start >= to.end) return;
  if (picked.node) act("move", { ...span(), to: [to.start, to.end] });
  else select(to.start, to.end, { words: true, anchor: picked.anchor });
}

function correct(action) {
  const button = document.querySelector(`[data-do="${action}"], [data-whole="${action}"]`);
  if (!button.disabled) act(action, button.dataset.do ? span() : {});
}

// ---- keys

function go(key, focused) {
  const word = focused.id[0] === "w" ? Number(focused.id.slice(1)) : null;
  const nodes = drawn.nodes, here = word === null ? nodes.findIndex((one) => nameOf(one) === focused.id) : -1 - word;
  const parent = word === null ? nodes[here].parent : drawn.parentOfWord[word];
  const pick = (child) => (child < 0 ? select(-1 - child, -child, { focus: true, words: true }) : select(nodes[child].start, nodes[child].end, { focus: true }));
  if (key === "ArrowUp") return parent !== null && pick(parent);
  if (key === "ArrowDown") return word === null && pick(nodes[here].children[0]);
  const by = (key === "ArrowRight") === (drawn.dir === "ltr") ? 1 : -1;
  if (word !== null) {
    const next = word + by;
    return next >= 0 && next < state.sentence.words.length && pick(-1 - next);
  }
  for (let at = here, above = parent; above !== null; at = above, above = nodes[above].parent) {
    const beside = nodes[above].children[nodes[above].children.indexOf(at) + by];
    if (beside !== undefined) return pick(beside);
  }
}

function extend(by) {
  const count = state.sentence.words.length, { anchor, start, end } = picked;
  const other = (start < anchor ? start : end - 1) + by;
  if (other < 0 || other >= count) return;
  select(Math.min(anchor, other), Math.max(anchor, other) + 1, { words: true, anchor, focus: true, on: `w${other}` });
}

const LETTERS = { Delete: "break", Backspace: "break" };
for (const button of document.querySelectorAll("[data-do], [data-whole]")) LETTERS[button.dataset.key] = button.dataset.do ?? button.dataset.whole;

// on its side, a tree's upper phrases are where a line of text begins
function turned(key) {
  const [back, on] = drawn?.dir === "rtl" ? ["ArrowRight", "ArrowLeft"] : ["ArrowLeft", "ArrowRight"];
  return view.side ? { [back]: "ArrowUp", [on]: "ArrowDown", ArrowUp: back, ArrowDown: on }[key] ?? key : key;
}

editor.addEventListener("keydown", (event) => {
  const key = turned(event.key), focused = document.activeElement;
  if (focused === byId("label") || focused === byId("tag")) {
    if (key === "Escape") { event.preventDefault(); select(picked.start, picked.end, { focus: true }); }
    return;
  }
  if (!state?.sentence && key !== "u") return;
  const arrow = key === "ArrowLeft" || key === "ArrowRight", inTree = tree.contains(focused);
  const by = arrow && (key === "ArrowRight") === (drawn.dir === "ltr") ? 1 : -1;
  let done = true;
  if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "z") correct("undo");
  else if (event.ctrlKey || event.metaKey) done = false;
  else if (inTree && arrow && event.shiftKey) { if (picked.node) move("end", by); else extend(by); }
  else if (inTree && arrow && event.altKey) move("start", by);
  else if (inTree && key.startsWith("Arrow")) go(key, focused);
  else if (inTree && key === "Enter") { if (picked.node) label(); else correct("join"); }
  else if (event.altKey) done = false;
  else if (key === "l") label();
  else if (state.labels.some((one) => one.key === key)) setLabel(state.labels.find((one) => one.key === key).name);
  else if (key === "t") look({ tags: !view.tags });
  else if (key === "v") look({ side: !view.side });
  else if (key === "+" || key === "-" || key === "0") zoom({ "+": 1, "-": -1, 0: 0 }[key]);
  else if (key === "g") tag();
  else if (LETTERS[key]) correct(LETTERS[key]);
  else done = false;
  if (done) event.preventDefault();
});

function label() { byId("label").focus(); byId("label").select(); }

function tag() {
  if (!view.tags) look({ tags: true });
  if (picked.end - picked.start > 1) select(picked.start, picked.start + 1, { words: true });
  byId("tag").focus();
  byId("tag").select();
}

// ---- mouse and touch

let drag = null;

function wordAt({ clientX: x, clientY: y }) {
  const words = [...row.children];
  const far = (one) => {
    const box = one.getBoundingClientRect();
    return view.side ? Math.max(box.top - y, y - box.bottom, 0) : Math.max(box.left - x, x - box.right, 0);
  };
  return words.reduce((best, one, place) => (far(one) < far(words[best]) ? place : best), 0);
}

tree.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || !state?.sentence) return;
  const { handle } = event.target.dataset, word = event.target.closest(".word"), node = event.target.closest(".node");
  if (handle) drag = { edge: handle, ...span() };
  else if (word) {
    const at = Number(word.id.slice(1)), anchor = event.shiftKey ? picked.anchor : at;
    drag = { edge: null, anchor };
    select(Math.min(anchor, at), Math.max(anchor, at) + 1, { words: true, anchor, focus: true, on: `w${at}` });
  } else if (node) {
    const [start, end] = node.id.slice(1).split("-").map(Number);
    select(start, end, { focus: true });
  }
  if (drag && event.pointerType === "mouse" || handle) event.preventDefault();
});

document.addEventListener("pointermove", (event) => {
  if (!drag || (event.pointerType !== "mouse" && !drag.edge)) return;
  const at = wordAt(event);
  if (drag.edge) {
    const to = drag.edge === "start" ? [Math.min(at, drag.end - 1), drag.end] : [drag.start, Math.max(at + 1, drag.start + 1)];
    drag.to = to;
    for (const [place, word] of [...row.children].entries()) word.classList.toggle("in", to[0] <= place && place < to[1]);
  } else select(Math.min(drag.anchor, at), Math.max(drag.anchor, at) + 1, { words: true, anchor: drag.anchor, focus: true, on: `w${at}` });
});

for (const kind of ["pointerup", "pointercancel"]) {
  document.addEventListener(kind, () => {
    const was = drag;
    drag = null;
    if (!was?.edge || !was.to) return;
    if (kind === "pointerup" && (was.to[0] !== was.start || was.to[1] !== was.end)) act("move", { start: was.start, end: was.end, to: was.to });
    else select(was.start, was.end, { focus: true });
  });
}

// a screen reader may move the focus by itself
tree.addEventListener("focusin", ({ target }) => {
  if (target.tabIndex === 0 || target.getAttribute("role") !== "treeitem") return;
  const [start, end] = target.id.slice(1).split("-").map(Number);
  if (end === undefined) select(start, start + 1, { words: true, on: target.id });
  else select(start, end);
});
tree.addEventListener("dblclick", (event) => { if (event.target.closest(".node")) label(); else if (event.target.closest(".tag")) tag(); });
for (const button of document.querySelectorAll("[data-view]")) button.addEventListener("click", () => look({ [button.dataset.view]: !view[button.dataset.view] }));
for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoom(Number(button.dataset.zoom)));
byId("tagging").addEventListener("submit", (event) => { event.preventDefault(); byId("tag").blur(); act("tag", { ...span(), label: byId("tag").value }); });
byId("pane").addEventListener("scroll", () => drawn?.follow(), { passive: true });
for (const button of document.querySelectorAll("[data-do], [data-whole]")) button.addEventListener("click", () => correct(button.dataset.do || button.dataset.whole));
for (const button of document.querySelectorAll("[data-edge]")) button.addEventListener("click", () => move(button.dataset.edge, Number(button.dataset.by)));
byId("labelling").addEventListener("submit", (event) => { event.preventDefault(); byId("label").blur(); setLabel(byId("label").value); });
addEventListener("resize", () => look({}));

const first = await ask("/state");
if (first.ok) show(first.found);
else warn(first.found.error);
