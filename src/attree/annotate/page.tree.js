// Draws the tree: words in a row and phrases above them, or, on its side, words below each other and
// phrases before them, where a line begins; where the sizes of words put them. The root is always in sight.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 44, LOW_ROW = 22, TOP = 26, WIDEST = 110;

export function nameOf(node) { return `n${node.start}-${node.end}`; }

// Phrases with their children: indices of phrases, or -1 - word.
export function structure(nodes, words) {
  const each = nodes.map((node) => ({ ...node, children: [], parent: null, height: 1, level: 1 }));
  const parentOfWord = [], open = [];
  let next = 0;
  for (let word = 0; word < words; word++) {
    while (next < each.length && each[next].start === word) {
      const above = open.length ? open[open.length - 1] : null;
      if (above !== null) { each[next].parent = above; each[next].level = each[above].level + 1; each[above].children.push(next); }
      open.push(next++);
    }
    const last = open.length ? open[open.length - 1] : null;
    parentOfWord.push(last);
    if (last !== null) each[last].children.push(-1 - word);
    while (open.length && each[open[open.length - 1]].end === word + 1) open.pop();
  }
  for (let place = each.length - 1; place >= 0; place--) {
    const above = each[place].parent;
    if (above !== null) each[above].height = Math.max(each[above].height, each[place].height + 1);
  }
  return { nodes: each, parentOfWord };
}

function describe(node, words) {
  const text = words.slice(node.start, node.end).join(" ");
  const parts = [node.label || "phrase without a label", text];
  if (node.given) parts.push("given");
  if (node.fixed) parts.push("settled");
  if (node.flat) parts.push("flat");
  if (node.weak !== null) parts.push(`weak, ${Math.round(100 * node.weak)} percent`);
  return parts.join(", ");
}

// The direction that a browser gives the whole sentence.
function direction(words) {
  const probe = document.createElement("p");
  probe.dir = "auto";
  probe.textContent = words.join(" ");
  document.body.append(probe);
  const found = getComputedStyle(probe).direction;
  probe.remove();
  return found;
}

function item(kind, id, level, label, text) {
  const made = document.createElement("div");
  made.className = kind;
  made.id = id;
  made.setAttribute("role", "treeitem");
  made.setAttribute("aria-level", level);
  made.setAttribute("aria-selected", "false");
  made.setAttribute("aria-label", label);
  made.tabIndex = -1;
  made.textContent = text;
  return made;
}

export function draw(tree, sentence, view) {
  const { nodes, parentOfWord } = structure(sentence.nodes, sentence.words.length);
  const row = tree.querySelector("#words"), edges = tree.querySelector("#edges");
  tree.querySelectorAll(".node").forEach((old) => old.remove());
  edges.setAttribute("width", 0);
  const dir = direction(sentence.words);
  tree.classList.toggle("side", view.side);
  tree.style.fontSize = `${view.zoom}rem`;
  row.style.marginLeft = row.style.marginRight = "0";
  row.dir = dir;
  const words = sentence.words.map((word, place) => {
    const above = parentOfWord[place];
    const made = item("word", `w${place}`, above === null ? 1 : nodes[above].level + 1, `word ${place + 1}, ${word}`, word);
    made.dir = /\p{L}/u.test(word) ? "auto" : dir;
    if (view.tags) made.prepend(tagOf(sentence.tags[place]));
    return made;
  });
  row.replaceChildren(...words);
  const pills = nodes.map((node) => {
    const pill = item("node", nameOf(node), node.level, describe(node, sentence.words), node.label);
    for (const mark of ["fixed", "given", "flat"]) pill.classList.toggle(mark, node[mark]);
    pill.classList.toggle("weak", node.weak !== null);
    pill.setAttribute("aria-expanded", "true");
    pill.dir = "ltr";
    return pill;
  });
  row.before(...pills);
  const follow = place(tree, nodes, pills, words, edges, row, { ...view, dir });
  follow();
  return { nodes, parentOfWord, dir, follow };
}

function tagOf({ tag, fixed }) {
  const made = document.createElement("span");
  made.className = fixed ? "tag fixed" : "tag";
  made.textContent = tag || "–";
  made.dir = "ltr";
  return made;
}

function place(tree, nodes, pills, words, edges, row, view) {
  const { side, zoom, dir } = view, pane = tree.parentElement;
  // a label that is wider than its words makes room for itself
  if (!side) nodes.forEach((node, at) => {
    const last = words[node.end - 1], first = words[node.start];
    const from = Math.min(first.offsetLeft, last.offsetLeft);
    const to = Math.max(first.offsetLeft + first.offsetWidth, last.offsetLeft + last.offsetWidth);
    const lacking = pills[at].offsetWidth + 6 - (to - from);
    if (lacking > 0) first.style.minWidth = `${first.offsetWidth + lacking}px`;
  });
  const tallest = nodes.reduce((most, node) => Math.max(most, node.height), 0);
  const widest = pills.reduce((most, pill) => Math.max(most, pill.offsetWidth), 0);
  // rows as high as lets the whole tree be seen at once, if that can be
  const room = (0.68 * innerHeight - row.offsetHeight - TOP * zoom) / Math.max(tallest, 1);
  const step = side ? Math.min(widest, WIDEST * zoom) + 12 : Math.max(LOW_ROW * zoom, Math.min(ROW * zoom, room));
  const top = side ? step / 2 + 4 : TOP * zoom, half = 12 * zoom, bottom = top + tallest * step;
  const middle = (word) => side ? words[word].offsetTop + words[word].offsetHeight / 2 : words[word].offsetLeft + words[word].offsetWidth / 2;
  const along = new Array(nodes.length);
  const centre = (child) => (child < 0 ? middle(-1 - child) : along[child]);
  const down = (node) => top + (tallest - node.height) * step;
  const end = bottom - step / 4, turned = side && dir === "rtl";
  const total = Math.max(pane.clientWidth, end + row.offsetWidth);
  const over = (level) => turned ? total - level : level;
  for (let at = nodes.length - 1; at >= 0; at--) {
    const { children } = nodes[at];
    along[at] = (centre(children[0]) + centre(children[children.length - 1])) / 2;
    pills[at].style[side ? "top" : "left"] = `${along[at]}px`;
    pills[at].style[side ? "left" : "top"] = `${over(down(nodes[at]))}px`;
  }
  if (side) row.style.marginLeft = `${turned ? total - end - row.offsetWidth : end}px`;
  if (turned) row.style.marginRight = `${end}px`;
  edges.setAttribute("width", side ? end : tree.clientWidth);
  edges.setAttribute("height", side ? row.offsetHeight : end);
  const line = (...points) => `M${points.map(([a, b]) => (side ? `${over(b)} ${a}` : `${a} ${b}`)).join("L")}`;
  const before = side ? (at) => pills[at].offsetWidth / 2 : () => half;
  // down from a phrase, along, and down to its child: no two of these lines cross
  const lines = [], bar = (at) => down(nodes[at]) + before(at) + (side ? 4 : step / 7);
  nodes.forEach((node, at) => node.children.forEach((child) => {
    const to = child < 0 ? null : nodes[child], stop = to ? down(to) - before(child) : end + 6;
    const d = line([along[at], bar(at)], [centre(child), bar(at)], [centre(child), stop]);
    const mark = to?.fixed ? "fixed" : to && to.weak !== null ? "weak" : "";
    lines.push(svg("path", { d, class: mark }));
  }));
  const stems = nodes.map((node, at) => svg("path", { d: line([along[at], down(node)], [along[at], bar(at)]) }));
  edges.replaceChildren(...lines, ...stems);
  // the root moves along its line, and stays where it can be seen
  return () => {
    if (!nodes.length || nodes[0].end - nodes[0].start !== words.length) return;
    const [from, size, own] = side ? [pane.scrollTop, pane.clientHeight, pills[0].offsetHeight] : [pane.scrollLeft, pane.clientWidth, pills[0].offsetWidth];
    const margin = own / 2 + 8, at = Math.max(from + margin, Math.min(along[0], from + size - margin));
    const hidden = turned ? total - pane.scrollLeft - pane.clientWidth : side ? pane.scrollLeft : pane.scrollTop;
    const level = Math.max(down(nodes[0]), hidden + before(0) + 4);
    pills[0].style[side ? "top" : "left"] = `${at}px`;
    pills[0].style[side ? "left" : "top"] = `${over(level)}px`;
    stems[0].setAttribute("d", line([at, down(nodes[0])], [at, bar(0)]));
  };
}

function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;

// Edits of the last sentences as dots, the mean of five as a line.
export function curve(picture, said, edits) {
  if (!edits.length) return;
  const shown = edits.slice(-60), first = edits.length - shown.length;
  const most = Math.max(4, ...shown), right = 310, left = 26, low = 76, high = 10;
  const x = (place) => (shown.length < 2 ? left : left + (right - left) * place / (shown.length - 1));
  const y = (value) => low - (low - high) * value / most;
  const smooth = shown.map((_, place) => mean(edits.slice(Math.max(0, first + place - 4), first + place + 1)));
  picture.replaceChildren(
    svg("line", { x1: left, y1: low, x2: right, y2: low }),
    svg("text", { x: left - 6, y: y(most) + 4, "text-anchor": "end" }, most),
    svg("text", { x: left - 6, y: low + 4, "text-anchor": "end" }, 0),
    svg("text", { x: left, y: low + 15 }, first + 1),
    svg("text", { x: right, y: low + 15, "text-anchor": "end" }, shown.length > 1 ? edits.length : ""),
    ...shown.map((value, place) => svg("circle", { cx: x(place), cy: y(value), r: 2.5 })),
    svg("polyline", { points: smooth.map((value, place) => `${x(place)},${y(value)}`).join(" ") }),
  );
  const now = mean(edits.slice(-5)).toFixed(1), then = mean(edits.slice(0, 5)).toFixed(1);
  said.textContent = edits.length < 10 ? `On average ${now} in the last ${Math.min(5, edits.length)} (line: mean of five)`
    : `${then} in the first five, ${now} in the last five (line: mean of five)`;
  picture.setAttribute("aria-label", `Edits of ${edits.length} sentences: ${said.textContent}`);
}
