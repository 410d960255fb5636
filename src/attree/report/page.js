"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// Tables: a click on a heading sorts by its column.
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("thead th").forEach((head, column) => head.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "descending";
    table.querySelectorAll("thead th").forEach((one) => one.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const body = table.tBodies[0];
    const key = (row) => row.cells[column].textContent;
    const order = (a, b) => {
      const [x, y] = [a, b].map((row) => parseFloat(key(row).replace(/,/g, "")));
      if (isNaN(x) && isNaN(y)) return key(a).localeCompare(key(b));
      return isNaN(x) ? -1 : isNaN(y) ? 1 : x - y;
    };
    body.append(...[...body.rows].sort((a, b) => (down ? order(a, b) : order(b, a))));
  }));
}

// Charts: Vega-Lite draws what the tables hold.
const scores = data.scores.map((row) => ({ ...row, name: row.encoder === "none" ? row.parser : `${row.parser}, ${row.encoder}` }));
const f1 = { field: "corpus_f1", type: "quantitative", title: "corpus F1", scale: { domain: [0, 100] } };
const parsers = { filter: "datum.encoder != 'none'" };
const embed = (place, spec) => vegaEmbed(place, { ...spec, background: "white" }, { actions: false, renderer: "svg" });
embed(at("bars-chart"), {
  data: { values: scores },
  facet: { field: "language", title: null },
  columns: 3,
  spec: {
    width: 230,
    layer: [
      { transform: [parsers], mark: "bar", encoding: { y: { field: "name", title: null }, x: f1, color: { field: "name", legend: null } } },
      { transform: [parsers], mark: { type: "rule", strokeWidth: 2 }, encoding: { y: { field: "name" }, x: { field: "corpus_f1_low", type: "quantitative" }, x2: { field: "corpus_f1_high" } } },
      { transform: [{ filter: "datum.encoder == 'none'" }], mark: { type: "rule", strokeDash: [3, 2] }, encoding: { x: f1, strokeWidth: { value: 1.5 }, tooltip: [{ field: "parser" }, { field: "corpus_f1" }], stroke: { field: "parser", title: "no parser", scale: { scheme: "dark2" } } } },
    ],
  },
});
for (const map of data.heads) {
  const place = document.createElement("div");
  at("heads-charts").append(place);
  embed(place, {
    title: map.title,
    data: { values: map.cells },
    width: { step: 34 }, height: { step: 24 },
    encoding: { x: { field: "head", type: "ordinal" }, y: { field: "layer", type: "ordinal" } },
    layer: [
      { mark: { type: "rect", strokeWidth: 2 }, encoding: { color: { field: "corpus_f1", type: "quantitative", title: "F1", scale: { scheme: "viridis" } }, stroke: { condition: { test: "datum.selected", value: "red" }, value: null } } },
      { mark: { type: "text", fontSize: 10 }, encoding: { text: { field: "corpus_f1", type: "quantitative", format: ".0f" }, color: { value: "white" } } },
    ],
  });
}

// The explorer.
const SVG = "http://www.w3.org/2000/svg";
const make = (name, attributes, text) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};
const ruler = document.createElement("canvas").getContext("2d");
const width = (word) => { ruler.font = "13px sans-serif"; return Math.max(22, ruler.measureText(word).width); };
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufefc]/;

function fill(select, names, texts) {
  select.replaceChildren(...names.map((name, index) => new Option(texts ? texts[index] : name, name)));
}

function light(start, end) {
  for (const one of document.querySelectorAll("#trees .lit")) one.classList.remove("lit");
  for (const word of document.querySelectorAll("#trees text[data-word]")) {
    const place = Number(word.dataset.word);
    word.classList.toggle("lit", start <= place && place < end);
  }
  for (const cell of document.querySelectorAll("#matrix rect")) {
    const inside = [cell.dataset.from, cell.dataset.to].every((x) => start <= x && x < end);
    cell.classList.toggle("lit", inside);
  }
}

function drawTree(place, words, spans, other, name) {
  const gap = 12, deep = 34;
  const widths = words.map(width);
  const total = widths.reduce((sum, one) => sum + one + gap, gap);
  const mirrored = words.some((word) => RIGHT_TO_LEFT.test(word));
  let x = gap;
  const centres = widths.map((one) => { const c = x + one / 2; x += one + gap; return mirrored ? total - c : c; });
  const known = new Set(other.map(([s, e]) => `${s} ${e}`));
  const nodes = [...spans].sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  if (!nodes.some(([s, e]) => s === 0 && e === words.length)) nodes.unshift([0, words.length, ""]);
  const root = { start: 0, end: words.length, children: [], label: "", root: true };
  const stack = [root];
  for (const [start, end, label] of nodes) {
    if (start === 0 && end === words.length) { root.label ||= label; continue; }
    while (!(stack.at(-1).start <= start && end <= stack.at(-1).end)) stack.pop();
    const node = { start, end, label, children: [], wrong: !known.has(`${start} ${end}`) };
    stack.at(-1).children.push(node);
    stack.push(node);
  }
  const height = (node) => (node.level = 1 + Math.max(0, ...node.children.map(height)));
  const levels = height(root);
  const svg = make("svg", { width: total, height: (levels + 1) * deep + 8, role: "group", "aria-label": `${name} tree of: ${words.join(" ")}` });
  const down = (node) => 20 + (levels - node.level) * deep;
  const bottom = 20 + levels * deep;
  const draw = (node) => {
    const group = make("g", { class: node.wrong ? "node wrong" : "node", tabindex: 0, role: "img", "aria-label": `${node.label || "span"}: ${words.slice(node.start, node.end).join(" ")}${node.wrong ? ", not in the other tree" : ""}` });
    node.x = (centres[node.start] + centres[node.end - 1]) / 2;
    const covered = new Set();
    const parts = node.children.map((child) => {
      for (let i = child.start; i < child.end; i++) covered.add(i);
      const drawn = draw(child);
      group.append(make("line", { x1: node.x, y1: down(node), x2: child.x, y2: down(child) }));
      return drawn;
    });
    for (let i = node.start; i < node.end; i++) if (!covered.has(i)) group.append(make("line", { x1: node.x, y1: down(node), x2: centres[i], y2: bottom - 14 }));
    group.append(make("circle", { cx: node.x, cy: down(node), r: 5 }));
    if (node.label) group.append(make("text", { x: node.x + 7, y: down(node) - 4 }, node.label));
    const show = (event) => { light(node.start, node.end); event.stopPropagation(); };
    group.addEventListener("mouseover", show);
    group.addEventListener("focus", show);
    group.append(...parts);
    return group;
  };
  svg.append(draw(root));
  words.forEach((word, index) => svg.append(make("text", { x: centres[index], y: bottom, "text-anchor": "middle", "data-word": index, direction: mirrored ? "rtl" : "ltr" }, word)));
  place.replaceChildren(svg);
}

function drawMatrix(place, words, values) {
  if (!values) { place.textContent = "Not kept for this sentence."; return; }
  const side = 20, margin = Math.max(...words.map(width)) + 8, n = words.length;
  const svg = make("svg", { width: margin + n * side + 4, height: margin + n * side + 4, role: "img", "aria-label": "Association of every word with every other" });
  words.forEach((word, i) => {
    svg.append(make("text", { x: margin - 4, y: margin + i * side + 14, "text-anchor": "end", "data-word": i }, word));
    svg.append(make("text", { transform: `translate(${margin + i * side + 14} ${margin - 4}) rotate(-90)`, "data-word": i }, word));
  });
  values.forEach((value, index) => {
    const [from, to] = [Math.floor(index / n), index % n];
    const cell = make("rect", { x: margin + to * side, y: margin + from * side, width: side - 1, height: side - 1, fill: `hsl(265 60% ${18 + 0.74 * value}%)`, "data-from": from, "data-to": to });
    cell.append(make("title", {}, `${words[from]} → ${words[to]}: ${value} % of the highest`));
    svg.append(cell);
  });
  place.replaceChildren(svg);
}

const here = () => data.trees[at("set").value];
function showSentence() {
  const set = here(), parser = set.parsers[at("parser").value], index = Number(at("sentence").value);
  for (const id of ["gold", "predicted", "matrix"]) at(id).replaceChildren();
  if (at("sentence").value === "") { at("about").textContent = "No sentence fits."; return; }
  const words = set.words[index], f1 = parser.f1[index];
  at("about").textContent = `Sentence ${set.sentence[index]}, ${words.length} words, F1 ${f1 === null ? "not counted" : f1.toFixed(2)}`;
  drawTree(at("gold"), words, set.gold[index], parser.spans[index], "Gold");
  drawTree(at("predicted"), words, parser.spans[index], set.gold[index], "Predicted");
  drawMatrix(at("matrix"), words, parser.association[index]);
}
function showSentences() {
  const set = here(), parser = set.parsers[at("parser").value];
  const wanted = at("search").value.toLowerCase(), most = Number(at("most").value);
  const places = set.words.map((_, i) => i)
    .filter((i) => (parser.f1[i] ?? 0) <= most && set.words[i].join(" ").toLowerCase().includes(wanted))
    .sort((a, b) => (parser.f1[a] ?? 101) - (parser.f1[b] ?? 101));
  fill(at("sentence"), places.map(String), places.map((i) => `${set.sentence[i]}: ${set.words[i].slice(0, 6).join(" ")}…`));
  showSentence();
}
function showSet() { fill(at("parser"), Object.keys(here().parsers)); showSentences(); }
function step(by) { const s = at("sentence"); s.selectedIndex = Math.min(s.length - 1, Math.max(0, s.selectedIndex + by)); showSentence(); }
if (Object.keys(data.trees).length) {
  fill(at("set"), Object.keys(data.trees));
  at("set").addEventListener("change", showSet);
  for (const id of ["parser", "search", "most"]) at(id).addEventListener("input", showSentences);
  at("sentence").addEventListener("change", showSentence);
  at("before").addEventListener("click", () => step(-1));
  at("after").addEventListener("click", () => step(1));
  at("choose").addEventListener("submit", (event) => event.preventDefault());
  showSet();
} else at("trees").hidden = true;
