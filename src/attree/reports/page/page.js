"use strict";
// Tables: a press on a heading sorts by its column; a dash, which is no figure, stands last.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead th")];
  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending" ||
      (!head.hasAttribute("aria-sort") && !head.classList.contains("text") && column > 0);
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const text = (row) => row.cells[column].textContent.trim();
    const figure = (row) => (/^[-+]?[\d.,]+/.test(text(row)) ? parseFloat(text(row).replace(/,/g, "")) : NaN);
    const order = (a, b) => {
      const [x, y] = [figure(a), figure(b)];
      if (isNaN(x) && isNaN(y)) return text(a).localeCompare(text(b)) * (down ? -1 : 1);
      return isNaN(x) ? 1 : isNaN(y) ? -1 : (x - y) * (down ? -1 : 1);
    };
    body.append(...[...body.rows].sort(order));
  }));
}
