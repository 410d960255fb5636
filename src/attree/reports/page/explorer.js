"use strict";
// The tree explorer. All text of treebanks goes through textContent and setAttribute: it is never markup.
(() => {
  const sets = JSON.parse(document.getElementById("data").textContent);
  if (!sets.length) return;
  const at = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const make = (name, attributes = {}, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = `13px ${getComputedStyle(document.body).fontFamily}`;
  const width = (text) => Math.max(14, ruler.measureText(text).width);
  const key = ([start, end]) => `${start}-${end}`;
  const isRightToLeft = (words) => {
    const letters = words.join("");
    const count = (kind) => (letters.match(kind) || []).length;
    return count(/\p{Script=Hebrew}|\p{Script=Arabic}|\p{Script=Syriac}|\p{Script=Thaana}|\p{Script=Nko}/gu) > count(/\p{L}/gu) / 2;
  };

  // A tree out of spans: every node has start, end, label, likely, children, level (1 lowest), only.
  function treeOf(words, spans, other) {
    const known = new Set(other.map(key));
    const whole = [0, words.length];
    const all = spans.some((one) => key(one) === key(whole)) ? [...spans] : [whole, ...spans];
    all.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
    const stack = [], nodes = [];
    for (const [start, end, label = "", marginal] of all) {
      while (stack.length && stack.at(-1).end < end) stack.pop();
      while (stack.length && stack.at(-1).end <= start) stack.pop();
      const only = !known.has(`${start}-${end}`) && end - start < words.length;
      const likely = end - start < words.length ? marginal : undefined; // the whole is always a phrase
      const node = { start, end, label, likely, only, children: [], parent: stack.at(-1), depth: stack.length };
      node.parent?.children.push(node);
      stack.push(node);
      nodes.push(node);
    }
    for (const node of [...nodes].reverse()) node.level = 1 + Math.max(0, ...node.children.map((child) => child.level));
    return nodes;
  }

  // What stands beside a phrase: its label, and how probable it is in hundredths.
  const written = (node) => [node.label, node.likely === undefined ? "" : `${Math.round(100 * node.likely)} %`].filter(Boolean).join(" ");

  // Places of words along one axis and of levels along the other, turned into x and y at the end.
  function layout(words, nodes, room, wish, mirrored) {
    const gap = 18, widths = words.map(width);
    const across = widths.reduce((sum, one) => sum + one + gap, 0);
    const down = wish === "down" || (wish === "fit" && across <= room);
    const levels = nodes[0].level;
    if (down) {
      let x = gap / 2;
      const centres = widths.map((one) => { const c = x + one / 2; x += one + gap; return mirrored ? across - c : c; });
      const step = 34, bottom = 26 + levels * step;
      return { down, width: across, height: bottom + 12, word: (i) => [centres[i], bottom], leaf: (i) => [centres[i], bottom - 14],
        place: (node) => [(centres[node.start] + centres[node.end - 1]) / 2, 26 + (levels - node.level) * step] };
    }
    const longest = Math.max(...widths), high = 23;
    const least = Math.max(18, ...nodes.map((node) => (written(node) ? Math.min(48, 12 + width(written(node))) : 18)));
    const step = Math.max(least, Math.min(48, (room - longest - 60) / levels));
    const first = Math.max(40, ...nodes.map((node) => width(written(node)) + 10 - (levels - node.level) * step));
    const edge = first + levels * step, total = edge + longest + 12;
    const turn = (x) => (mirrored ? total - x : x);
    const y = (i) => 14 + i * high;
    return { down, width: total, height: words.length * high + 8, word: (i) => [turn(edge + 4), y(i) + 4], leaf: (i) => [turn(edge), y(i)],
      place: (node) => [turn(first + (levels - node.level) * step), (y(node.start) + y(node.end - 1)) / 2] };
  }

  // A label stands where no line is: away from the parent, or over the line that comes from it.
  function label(text, x, y, lay, node, mirrored) {
    const toTheLeft = lay.down ? Boolean(node.parent) && lay.place(node.parent)[0] > x : !mirrored;
    return make("text", { class: "label", x: x + (toTheLeft ? -7 : 7), y: y - 5, "text-anchor": toTheLeft ? "end" : "start" }, text);
  }

  const says = (node, words) => {
    const told = [`${node.label || "phrase"}: ${words.slice(node.start, node.end).join(" ")}`];
    if (node.only) told.push("not in the other tree");
    if (node.likely !== undefined) told.push(`probability ${node.likely.toFixed(2)}`);
    return told.join(", ");
  };

  function drawTree(place, words, spans, other, name) {
    const mirrored = isRightToLeft(words), nodes = treeOf(words, spans, other);
    const lay = layout(words, nodes, place.clientWidth, at("draw").value, mirrored);
    const svg = make("svg", { width: Math.ceil(lay.width), height: Math.ceil(lay.height), viewBox: `0 0 ${Math.ceil(lay.width)} ${Math.ceil(lay.height)}`, role: "tree", "aria-label": `${name} tree` });
    const edges = make("g", { "aria-hidden": "true" }), marks = make("g", { role: "presentation" }), leaves = make("g", { "aria-hidden": "true" });
    const link = ([x1, y1], [x2, y2], only) => {
      const elbow = lay.down ? `M${x1} ${y1} L${x2} ${y2}` : `M${x1} ${y1} V${y2} H${x2}`;
      edges.append(make("path", { d: elbow, class: only ? "edge only" : "edge" }));
    };
    for (const node of nodes) {
      const [x, y] = lay.place(node), covered = new Set();
      for (const child of node.children) {
        for (let i = child.start; i < child.end; i++) covered.add(i);
        link([x, y], lay.place(child), child.only);
      }
      for (let i = node.start; i < node.end; i++) if (!covered.has(i)) link([x, y], lay.leaf(i), false);
      const group = make("g", { class: node.only ? "node only" : "node", role: "treeitem", tabindex: node.parent ? -1 : 0, "aria-level": node.depth + 1, "aria-label": says(node, words), "data-start": node.start, "data-end": node.end });
      group.append(make("circle", { class: "halo", cx: x, cy: y, r: 10 }));
      group.append(node.only ? make("path", { class: "cross", d: `M${x - 5} ${y - 5} l10 10 m0 -10 l-10 10` }) : make("circle", { class: "dot", cx: x, cy: y, r: 4 }));
      const text = written(node);
      if (text) group.append(label(text, x, y, lay, node, mirrored));
      group.append(make("title", {}, says(node, words)));
      group.addEventListener("pointerenter", () => light(node.start, node.end, says(node, words)));
      group.addEventListener("focus", () => light(node.start, node.end, says(node, words)));
      node.group = group;
      marks.append(group);
    }
    words.forEach((word, i) => {
      const [x, y] = lay.word(i);
      const anchor = lay.down ? "middle" : "start"; // of right-to-left text the start is its right end
      leaves.append(make("text", { x, y, "text-anchor": anchor, "data-word": i, direction: mirrored ? "rtl" : "ltr" }, word));
    });
    svg.addEventListener("keydown", (event) => walk(event, nodes, lay.down, mirrored));
    svg.append(edges, marks, leaves);
    place.replaceChildren(svg);
  }

  // Arrow keys as the tree is drawn: towards the root, to the first child, to the phrases beside.
  function walk(event, nodes, down, mirrored) {
    const node = nodes.find((one) => one.group === event.target);
    const siblings = node?.parent?.children ?? [], here = siblings.indexOf(node);
    const [root, child, before, after] = down ? ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"] : ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
    const turned = mirrored ? { ArrowLeft: "ArrowRight", ArrowRight: "ArrowLeft" } : {};
    const pressed = turned[event.key] ?? event.key;
    const target = { [root]: node?.parent, [child]: node?.children[0], [before]: siblings[here - 1], [after]: siblings[here + 1], Home: nodes[0], End: nodes.at(-1) }[pressed];
    if (![root, child, before, after, "Home", "End"].includes(pressed)) return;
    event.preventDefault();
    if (!target) return;
    for (const one of nodes) one.group.setAttribute("tabindex", one === target ? 0 : -1);
    target.group.focus();
  }

  function drawMatrix(place, words, coded, spans, gold) {
    const n = words.length, side = Math.round(Math.max(15, Math.min(30, 420 / n))), mirrored = isRightToLeft(words);
    const bytes = Uint8Array.from(atob(coded), (sign) => sign.charCodeAt(0));
    const margin = Math.min(160, Math.max(...words.map(width)) + 8), total = margin + n * side + 4;
    const left = mirrored ? 2 : margin, x = (i) => left + (mirrored ? n - 1 - i : i) * side, y = (i) => margin + i * side;
    const svg = make("svg", { width: total, height: total, viewBox: `0 0 ${total} ${total}`, role: "img", "aria-label": `Association of the ${n} words with each other, as a heat map` });
    words.forEach((word, i) => {
      const end = mirrored ? { x: total - margin + 4, "text-anchor": "end", direction: "rtl" } : { x: margin - 5, "text-anchor": "end" };
      svg.append(make("text", { ...end, y: y(i) + side / 2 + 4, "data-word": i }, word));
      svg.append(make("text", { transform: `translate(${x(i) + side / 2 + 4} ${margin - 5}) rotate(-90)`, "data-word": i }, word));
    });
    bytes.forEach((value, index) => {
      const [from, to] = [Math.floor(index / n), index % n];
      const cell = make("rect", { class: "cell", x: x(to), y: y(from), width: side - 1, height: side - 1, "fill-opacity": Math.sqrt(value / 255).toFixed(2), "data-from": from, "data-to": to });
      cell.append(make("title", {}, `${words[from]} → ${words[to]}: ${Math.round(value / 2.55)} % of the highest`));
      svg.append(cell);
    });
    svg.append(make("rect", { class: "frame", x: left, y: margin, width: n * side, height: n * side }));
    const known = new Set(gold.map(key));
    for (const [start, end] of spans) {
      const only = !known.has(`${start}-${end}`) && end - start < n;
      const first = mirrored ? x(end - 1) : x(start), size = (end - start) * side - 1;
      const outline = make("rect", { class: only ? "outline only" : "outline", x: first, y: y(start), width: size, height: size, "data-start": start, "data-end": end });
      outline.addEventListener("pointerenter", () => light(start, end, words.slice(start, end).join(" ")));
      svg.append(outline);
    }
    place.replaceChildren(svg);
  }

  function light(start, end, told) {
    const inside = (i) => start <= Number(i) && Number(i) < end;
    for (const word of document.querySelectorAll("#trees text[data-word]")) word.classList.toggle("lit", inside(word.dataset.word));
    for (const cell of document.querySelectorAll("#matrix .cell")) cell.classList.toggle("lit", inside(cell.dataset.from) && inside(cell.dataset.to));
    for (const one of document.querySelectorAll("#trees .node, #matrix .outline")) one.classList.toggle("lit", Number(one.dataset.start) === start && Number(one.dataset.end) === end);
    at("matrix").classList.add("dim");
    at("span").textContent = told;
  }

  function brackets(words, spans) {
    const opened = words.map(() => ""), closed = words.map(() => 0);
    for (const [start, end, label = ""] of [...spans].sort((a, b) => a[0] - b[0] || b[1] - a[1])) { opened[start] += `(${label}${label ? " " : ""}`; closed[end - 1]++; }
    return words.map((word, i) => opened[i] + word + ")".repeat(closed[i])).join(" ");
  }

  const here = () => sets[at("set").value], parser = () => here().parsers[at("parser").value];
  const shown = (f1) => (f1 === null ? "–" : f1.toFixed(2));

  function showSentence() {
    const choice = at("sentence").value;
    at("matrix").classList.remove("dim");
    at("span").textContent = "";
    if (choice === "") {
      for (const id of ["gold", "predicted", "matrix", "gold-brackets", "predicted-brackets"]) at(id).replaceChildren();
      at("about").textContent = "No sentence is like this: widen the filters.";
      return;
    }
    const i = Number(choice), set = here(), own = parser(), words = set.words[i], gold = set.gold[i], found = own.spans[i];
    const known = new Set(gold.map(key)), inner = found.filter(([s, e]) => e - s < words.length);
    const right = inner.filter((one) => known.has(key(one))).length;
    const status = { ok: "", right_branching: " Past the encoder's limit: branched right.", skipped: " The parser gave no tree." }[own.status[i]];
    const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
    at("about").textContent = `Sentence ${set.sentence[i] + 1}: ${many(words.length, "word")}, F1 ${shown(own.f1[i])}; ${right} of ${many(inner.length, "phrase")} right.${status}`;
    drawTree(at("gold"), words, gold, found, "Gold");
    drawTree(at("predicted"), words, found, gold, "Predicted");
    at("gold-brackets").textContent = brackets(words, gold);
    at("predicted-brackets").textContent = brackets(words, found);
    const coded = own.association?.[i];
    if (coded) drawMatrix(at("matrix"), words, coded, found, gold);
    else at("matrix").textContent = own.association ? "Not kept in this page for this sentence: it is long, or the page has no room." : "None: this parser's trees are imported or averaged, or its attention is no longer among the results.";
  }

  function showSentences() {
    const set = here(), own = parser(), wanted = at("search").value.trim().toLowerCase();
    const number = (id, otherwise) => (at(id).value === "" ? otherwise : Number(at(id).value));
    const [low, high, short, long] = [number("f1-from", 0), number("f1-to", 100), number("n-from", 1), number("n-to", Infinity)];
    const places = set.words.map((_, i) => i).filter((i) => {
      const f1 = own.f1[i], n = set.words[i].length;
      const fits = f1 === null ? low <= 0 && high >= 100 : low <= f1 && f1 <= high;
      return fits && short <= n && n <= long && set.words[i].join(" ").toLowerCase().includes(wanted);
    });
    const by = { worst: (a, b) => (own.f1[a] ?? 101) - (own.f1[b] ?? 101), best: (a, b) => (own.f1[b] ?? -1) - (own.f1[a] ?? -1), treebank: (a, b) => set.sentence[a] - set.sentence[b] };
    places.sort(by[at("order").value]);
    at("sentence").replaceChildren(...places.map((i) => new Option(`F1 ${shown(own.f1[i])} · ${set.words[i].length} words · ${set.words[i].join(" ")}`, i)));
    if (places.length) at("sentence").selectedIndex = 0;
    const list = at("sentence").closest("label");
    list.firstChild.textContent = `Sentence: ${places.length} of ${set.words.length} here${set.words.length < set.total ? ` (the treebank's ${set.total}: the worst, and others spread over the rest)` : ""} `;
    showSentence();
  }

  function showSet() {
    const before = at("parser").selectedOptions[0]?.text;
    at("parser").replaceChildren(...here().parsers.map((one, i) => new Option(one.name, i)));
    const again = here().parsers.findIndex((one) => one.name === before);
    const first = here().parsers.findIndex((one) => one.association);
    at("parser").selectedIndex = again >= 0 ? again : Math.max(0, first);
    at("n-to").value = Math.max(...here().words.map((words) => words.length));
    showSentences();
  }

  function step(by) {
    const list = at("sentence");
    list.selectedIndex = Math.min(list.length - 1, Math.max(0, list.selectedIndex + by));
    showSentence();
  }

  at("set").replaceChildren(...sets.map((one, i) => new Option(one.name, i)));
  at("set").addEventListener("change", showSet);
  for (const id of ["parser", "search", "f1-from", "f1-to", "n-from", "n-to", "order"]) at(id).addEventListener("input", showSentences);
  for (const id of ["sentence", "draw"]) at(id).addEventListener("change", showSentence);
  at("before").addEventListener("click", () => step(-1));
  at("after").addEventListener("click", () => step(1));
  at("choose").addEventListener("submit", (event) => event.preventDefault());
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    const { start, end } = document.activeElement.dataset, place = document.activeElement.closest("#gold, #predicted")?.id;
    showSentence();
    if (place) document.querySelector(`#${place} .node[data-start="${start}"][data-end="${end}"]`)?.focus();
  });
  showSet();
})();
