// Draws the tree: words in a row, phrases above them, where the widths of words put them.

const SVG = "http://www.w3.org/2000/svg";
const ROW = 44, LOW_ROW = 30, TOP = 26;

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

export function draw(tree, sentence) {
  const { nodes, parentOfWord } = structure(sentence.nodes, sentence.words.length);
  const row = tree.querySelector("#words"), edges = tree.querySelector("#edges");
  tree.querySelectorAll(".node").forEach((old) => old.remove());
  edges.setAttribute("width", 0);
  const dir = direction(sentence.words);
  row.dir = dir;
  const words = sentence.words.map((word, place) => {
    const above = parentOfWord[place];
    const made = item("word", `w${place}`, above === null ? 1 : nodes[above].level + 1, `word ${place + 1}, ${word}`, word);
    made.dir = "auto";
    return made;
  });
  row.replaceChildren(...words);
  const pills = nodes.map((node) => {
    const pill = item("node", nameOf(node), node.level, describe(node, sentence.words), node.label);
    for (const mark of ["fixed", "flat"]) pill.classList.toggle(mark, node[mark]);
    pill.classList.toggle("weak", node.weak !== null);
    pill.setAttribute("aria-expanded", "true");
    pill.dir = "ltr";
    return pill;
  });
  row.before(...pills);
  place(tree, nodes, pills, words, edges, row);
  return { nodes, parentOfWord, dir };
}

function place(tree, nodes, pills, words, edges, row) {
  // a label that is wider than its words makes room for itself
  nodes.forEach((node, at) => {
    const last = words[node.end - 1], first = words[node.start];
    const from = Math.min(first.offsetLeft, last.offsetLeft);
    const to = Math.max(first.offsetLeft + first.offsetWidth, last.offsetLeft + last.offsetWidth);
    const lacking = pills[at].offsetWidth + 6 - (to - from);
    if (lacking > 0) first.style.minWidth = `${first.offsetWidth + lacking}px`;
  });
  const tallest = nodes.reduce((most, node) => Math.max(most, node.height), 0);
  const step = tallest > 12 ? LOW_ROW : ROW;
  const bottom = TOP + tallest * step;
  const x = new Array(nodes.length);
  const middle = (word) => words[word].offsetLeft + words[word].offsetWidth / 2;
  const centre = (child) => (child < 0 ? middle(-1 - child) : x[child]);
  const y = (node) => TOP + (tallest - node.height) * step;
  for (let at = nodes.length - 1; at >= 0; at--) {
    const { children } = nodes[at];
    x[at] = (centre(children[0]) + centre(children[children.length - 1])) / 2;
    pills[at].style.left = `${x[at]}px`;
    pills[at].style.top = `${y(nodes[at])}px`;
  }
  edges.setAttribute("width", tree.clientWidth);
  edges.setAttribute("height", bottom - step / 4);
  // down from a phrase, along, and down to its child: no two of these lines cross
  const lines = [];
  nodes.forEach((node, at) => node.children.forEach((child) => {
    const to = child < 0 ? null : nodes[child], below = y(node) + 12 + step / 7;
    const d = `M${x[at]} ${y(node) + 12}V${below}H${centre(child)}V${to ? y(to) - 12 : bottom - step / 4 + 6}`;
    const mark = to?.fixed ? "fixed" : to && to.weak !== null ? "weak" : "";
    lines.push(svg("path", { d, class: mark }));
  }));
  edges.replaceChildren(...lines);
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
