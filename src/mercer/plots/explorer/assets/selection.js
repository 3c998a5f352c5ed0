// Rows that are selected: by a lasso, a box, a search, a class of the legend or one by one; and their export.

class Selection {
  constructor(n) { this.n = n; this.rows = new Uint8Array(n); this.count = 0; this.listeners = []; }

  // how: "replace", "add" or "remove"
  take(rows, how, what) {
    if (how === "replace") this.rows.fill(0);
    for (const row of rows) this.rows[row] = how === "remove" ? 0 : 1;
    this.changed(what);
  }

  clear() { this.rows.fill(0); this.changed("Selection cleared."); }

  changed(what) {
    this.count = this.rows.reduce((sum, each) => sum + each, 0);
    for (const listener of this.listeners) listener(what);
  }

  list(limit = Infinity) {
    const rows = [];
    for (let row = 0; row < this.n && rows.length < limit; row++) if (this.rows[row]) rows.push(row);
    return rows;
  }

  // The numbers of the rows; beside them where they stand in their file, if a column says so.
  csv(place) {
    if (!place) return `row\n${this.list().join("\n")}\n`;
    return `row,${field(place.name)}\n${this.list().map((row) => `${row},${field(String(valueOf(place, row)))}`).join("\n")}\n`;
  }
}

function field(text) { return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; }

function inBox(screen, n, [x0, y0], [x1, y1], panel) {
  const corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
  return inLasso(screen, n, corners, panel);
}

// Rows inside a polygon, by the number of its sides to the right of them; a box around it sorts most of them out.
function inLasso(screen, n, corners, panel) {
  const xs = corners.map((corner) => corner[0]), ys = corners.map((corner) => corner[1]);
  const left = Math.max(Math.min(...xs), panel.x), right = Math.min(Math.max(...xs), panel.x + panel.w);
  const top = Math.max(Math.min(...ys), panel.y), bottom = Math.min(Math.max(...ys), panel.y + panel.h);
  const rows = [];
  for (let row = 0; row < n; row++) {
    const x = screen[3 * row], y = screen[3 * row + 1];
    if (x >= left && x <= right && y >= top && y <= bottom && inside(x, y, corners)) rows.push(row);
  }
  return rows;
}

function inside(x, y, corners) {
  let result = false;
  for (let i = 0, j = corners.length - 1; i < corners.length; j = i++) {
    const [xi, yi] = corners[i], [xj, yj] = corners[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) result = !result;
  }
  return result;
}

function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
