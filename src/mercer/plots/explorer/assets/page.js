// Puts the page together and listens to the reader.

const get = (id) => document.getElementById(id);
const REACH = 12; // pixels around the pointer in which a row is found
const THEMES = { auto: "as the system", light: "light", dark: "dark" };

const explorer = {
  hovered: -1, theme: "auto", mode: "move", colour: null, pressed: -1, selection: new Selection(description.n), picture: null,

  get dark() {
    return this.theme === "dark" || (this.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  },
  get dims() { return Number(document.querySelector("[name=dims]:checked").value); },
  get withShapes() { return get("shapes").checked && this.colour?.kind === "category"; },

  say(text) { get("status").textContent = text; },

  showViews() {
    const views = get("beside").checked ? description.views : [description.views[get("view").value]];
    const axes = [0, 1, 2].map((j) => Number(get(`axis-${j}`).value || j));
    document.querySelectorAll(".axis").forEach((label, j) => { label.hidden = views.length > 1 || j >= this.dims; label.style.display = label.hidden ? "none" : ""; });
    this.picture?.setPanels(views, this.dims, axes);
    this.look();
    get("captions").replaceChildren(...(this.picture?.panels ?? []).map(() => make("span", {})));
    this.captions();
  },

  captions() {
    [...get("captions").children].forEach((span, i) => {
      const panel = this.picture.panels[i];
      if (!panel) return;
      const names = panel.axes.map((j) => panel.view.axes[j]).filter(Boolean);
      span.textContent = this.picture.panels.length > 1 ? panel.view.name : `${panel.view.name}: ${names.join(" × ")}`;
      Object.assign(span.style, { left: `${panel.x}px`, top: `${panel.y}px` });
    });
  },

  listAxes() {
    const view = description.views[get("view").value];
    [0, 1, 2].forEach((j) => {
      const names = [...view.axes, "nothing"]; // where a view has fewer coordinates than the picture dimensions
      const options = names.map((name, i) => make("option", { value: i, selected: i === Math.min(j, view.axes.length) }, name));
      get(`axis-${j}`).replaceChildren(...options);
    });
  },

  // Colours of all rows: those of the column, pale for rows that are not selected.
  paint() {
    const column = this.colour, dark = this.dark, n = description.n, opacity = Number(get("opacity").value);
    get("scale-label").hidden = column?.kind !== "number";
    get("scale-label").style.display = get("scale-label").hidden ? "none" : "";
    let colourOf = () => rgb(dark ? "#56b4e9" : "#0072b2"), legend = [make("p", { className: "quiet" }, "One colour for all rows.")];
    if (column?.kind === "category") {
      const palette = column.words.map((_, i) => (i < MOST_CLASSES ? rgb(classColour(i, dark)) : NONE));
      colourOf = (row) => palette[column.values[row]] ?? NONE;
      legend = classLegend(column, this.pressed, dark, this.withShapes, (i) => this.chooseClass(i));
    } else if (column) {
      const { result, ends } = shares(column, get("scale").value);
      const steps = Array.from({ length: 256 }, (_, i) => ramp(i / 255, dark));
      colourOf = (row) => (Number.isNaN(result[row]) ? NONE : steps[Math.round(255 * result[row])]);
      legend = rampLegend(ends, dark, result.reduce((sum, share) => sum + Number.isNaN(share), 0));
    }
    get("legend-title").textContent = column ? column.name : "Legend";
    get("legend").replaceChildren(...legend);
    if (!this.picture) return;
    const values = this.picture.colours.array, some = this.selection.count > 0;
    for (let row = 0; row < n; row++) {
      const [r, g, b] = colourOf(row), chosen = !some || this.selection.rows[row];
      values[4 * row] = r; values[4 * row + 1] = g; values[4 * row + 2] = b;
      values[4 * row + 3] = 255 * (chosen ? (some ? 1 : opacity) : Math.min(0.16, opacity));
    }
    this.picture.colours.needsUpdate = true;
    this.picture.draw();
  },

  regroup() {
    const column = this.colour;
    const shapeOf = this.withShapes ? (row) => { const c = column.values[row]; return c >= 0 && c < MOST_CLASSES ? SHAPES[c % SHAPES.length] : "disc"; } : null;
    const rings = get("rings").checked && description.landmarks ? Uint32Array.from(description.landmarks.rows) : null;
    this.picture?.group(shapeOf, this.selection.count ? this.selection.rows : null, rings);
    this.look();
  },

  look() {
    const style = getComputedStyle(document.documentElement);
    this.picture?.look({ size: Number(get("size").value), back: style.getPropertyValue("--back").trim(), ink: style.getPropertyValue("--ink").trim() });
  },

  chooseClass(i) {
    this.pressed = this.pressed === i ? -1 : i;
    if (this.pressed < 0) return this.selection.clear();
    const rows = [];
    for (let row = 0; row < description.n; row++) if (this.colour.values[row] === i) rows.push(row);
    this.selection.take(rows, "replace", `Class ${this.colour.words[i]}`);
  },

  selected(what) {
    if (!what.startsWith("Class")) this.pressed = -1;
    const { count } = this.selection, text = `${count.toLocaleString("en")} of ${description.n.toLocaleString("en")} rows selected`;
    this.say(count ? `${what}: ${text}.` : what);
    get("export").disabled = !count;
    get("selected-title").textContent = count ? `Selected rows: ${count.toLocaleString("en")}` : "Selected rows: none";
    get("selected-table").replaceChildren(...(count ? [selectedTable(this.selection, (row) => this.hover(row, true))] : []));
    this.regroup();
    this.paint();
  },

  // A row is pointed at: ring, tooltip and details; said aloud where keys were used.
  hover(row, aloud = false) {
    this.hovered = row;
    const tooltip = get("tooltip");
    tooltip.hidden = row < 0;
    if (row >= 0) {
      get("row").replaceChildren(rowTable(row));
      tooltip.replaceChildren(tooltipLines(row, this.colour));
      if (aloud) this.say(`Row ${row}${this.colour ? `, ${this.colour.name} ${textOf(this.colour, row)}` : ""}.`);
      this.placeTooltip();
    }
    this.drawOverlay();
  },

  placeTooltip() {
    const at = this.picture && this.position(this.hovered), tooltip = get("tooltip"), stage = get("stage");
    if (!at) { tooltip.hidden = true; return; }
    const w = tooltip.offsetWidth, h = tooltip.offsetHeight;
    tooltip.style.left = `${at[0] + 14 + w > stage.clientWidth ? Math.max(at[0] - w - 14, 0) : at[0] + 14}px`;
    tooltip.style.top = `${Math.min(Math.max(at[1] + 10, 0), Math.max(stage.clientHeight - h, 0))}px`;
  },

  // Pixels of a row in a panel of the stage, the first unless another is asked for; null if it is out of sight.
  position(row, panel = this.picture?.panels[0]) {
    if (!panel || row < 0 || row >= description.n) return null;
    const screen = this.picture.screen(panel), x = screen[3 * row], y = screen[3 * row + 1];
    return x >= panel.x && x <= panel.x + panel.w && y >= panel.y && y <= panel.y + panel.h ? [x, y] : null;
  },

  drawOverlay() {
    const canvas = get("overlay"), ratio = window.devicePixelRatio, picture = this.picture;
    const busy = picture && (this.hovered >= 0 || this.trail || this.dims === 3 || picture.panels.length > 1);
    if (!picture || (!busy && !this.overlaid)) return; // nothing to draw, nothing to wipe out
    this.overlaid = busy;
    const context = canvas.getContext("2d"), ink = getComputedStyle(document.documentElement).getPropertyValue("--ink");
    const [w, h] = [Math.round(picture.width * ratio), Math.round(picture.height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.setLineDash([]);
    context.globalAlpha = 1;
    context.clearRect(0, 0, w, h);
    context.scale(ratio, ratio);
    context.strokeStyle = context.fillStyle = ink;
    for (const panel of picture.panels) {
      if (panel.x) { context.globalAlpha = 0.3; context.strokeRect(panel.x, -1, 0.5, picture.height + 2); context.globalAlpha = 1; }
      if (panel.dims === 3) this.drawTripod(context, panel);
      const at = this.hovered >= 0 && this.position(this.hovered, panel);
      if (at) { context.lineWidth = 2; context.beginPath(); context.arc(at[0], at[1], Number(get("size").value) / 2 + 4, 0, 2 * Math.PI); context.stroke(); }
    }
    if (this.trail?.length > 1) {
      context.lineWidth = 1.5; context.setLineDash([5, 4]); context.beginPath();
      this.trail.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath(); context.stroke(); context.globalAlpha = 0.08; context.fill();
    }
  },

  drawTripod(context, panel) {
    const m = panel.camera.three.matrixWorldInverse.elements, x = panel.x + 34, y = panel.y + panel.h - 34;
    context.lineWidth = 1.2; context.font = "11px system-ui";
    [0, 1, 2].forEach((j) => {
      const dx = 24 * m[4 * j], dy = -24 * m[4 * j + 1];
      context.beginPath(); context.moveTo(x, y); context.lineTo(x + dx, y + dy); context.stroke();
      context.fillText("xyz"[j], x + 1.25 * dx - 3, y + 1.25 * dy + 4);
    });
  },
};

const local = (event) => { const box = get("points").getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

function listenToPointer() {
  const stage = get("stage"), { picture, selection } = explorer;
  let last = null, panel = null, mode = "move", dragged = false, pending = null;
  stage.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    last = local(event); panel = picture.panelAt(...last); dragged = false;
    mode = (event.shiftKey || event.altKey) && explorer.mode === "move" ? "lasso" : explorer.mode;
    explorer.trail = panel && mode !== "move" ? [last] : null;
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener("pointermove", (event) => {
    const here = local(event);
    if (!last) {
      if (pending === null) requestAnimationFrame(() => { const at = pending; pending = null; if (at && !last) explorer.hover(picture.nearest(...at, REACH)); });
      pending = here;
      return;
    }
    if (!dragged && Math.hypot(here[0] - last[0], here[1] - last[1]) < 4) return;
    dragged = true;
    if (!panel) return;
    if (mode === "move") {
      panel.camera.drag(here[0] - last[0], here[1] - last[1], panel.w, panel.h);
      last = here;
      explorer.hover(-1);
      picture.moved();
    } else {
      const [x0, y0] = explorer.trail[0];
      if (mode === "lasso") explorer.trail.push(here);
      else explorer.trail = [[x0, y0], [here[0], y0], here, [x0, here[1]]];
      explorer.drawOverlay();
    }
  });
  stage.addEventListener("pointerup", (event) => {
    if (!last) return;
    const how = event.altKey ? "remove" : event.shiftKey ? "add" : "replace", trail = explorer.trail;
    explorer.trail = null;
    last = null;
    if (!dragged) {
      const row = picture.nearest(...local(event), REACH);
      explorer.hover(row);
      if (row >= 0) selection.take([row], how, `Row ${row}`);
      else if (selection.count && how === "replace") selection.clear();
    } else if (trail?.length > 2) {
      const rows = inLasso(picture.screen(panel), description.n, trail, panel);
      selection.take(rows, how, mode === "box" ? "Box" : "Lasso");
    }
    explorer.drawOverlay();
  });
  stage.addEventListener("pointercancel", () => { last = null; explorer.trail = null; explorer.drawOverlay(); });
  stage.addEventListener("pointerleave", () => { pending = null; if (!last) explorer.hover(-1); });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = local(event), under = picture.panelAt(...at);
    if (!under) return;
    under.camera.zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), at[0] - under.x, at[1] - under.y, under.w, under.h);
    explorer.hover(-1);
    picture.moved();
  }, { passive: false });
}

function listenToKeys() {
  const { picture, selection } = explorer;
  const step = (way) => {
    const rows = selection.count ? selection.list() : null, n = rows ? rows.length : description.n;
    const at = rows ? rows.indexOf(explorer.hovered) : explorer.hovered, next = (at + way + n + (at < 0 && way < 0 ? 1 : 0)) % n;
    explorer.hover(rows ? rows[next] : next, true);
  };
  const each = (change) => { for (const panel of picture.panels) change(panel.camera, panel); picture.moved(); explorer.hover(explorer.hovered); };
  const drag = (dx, dy) => () => each((camera, panel) => camera.drag(dx, dy, panel.w, panel.h));
  const zoom = (factor) => () => each((camera, panel) => camera.zoomBy(factor, panel.w / 2, panel.h / 2, panel.w, panel.h));
  const mode = (name) => () => { document.querySelector(`[name=mode][value=${name}]`).click(); explorer.say(`Dragging now: ${name}.`); };
  const keys = {
    ArrowLeft: drag(40, 0), ArrowRight: drag(-40, 0), ArrowUp: drag(0, 40), ArrowDown: drag(0, -40), "+": zoom(1.25), "=": zoom(1.25), "-": zoom(0.8),
    0: () => get("reset").click(), "[": () => step(-1), "]": () => step(1), Escape: () => get("clear").click(), m: mode("move"), b: mode("box"), l: mode("lasso"),
    Enter: () => { if (explorer.hovered >= 0) selection.take([explorer.hovered], "add", `Row ${explorer.hovered}`); },
  };
  get("stage").addEventListener("keydown", (event) => {
    const act = !event.ctrlKey && !event.metaKey && keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function listenToControls() {
  const on = (id, kind, act) => get(id).addEventListener(kind, act);
  on("view", "change", () => { explorer.listAxes(); explorer.showViews(); explorer.say(description.views[get("view").value].note); });
  for (const id of ["axis-0", "axis-1", "axis-2", "beside"]) on(id, "change", () => explorer.showViews());
  document.querySelectorAll("[name=dims]").forEach((radio) => radio.addEventListener("change", () => explorer.showViews()));
  document.querySelectorAll("[name=mode]").forEach((radio) => radio.addEventListener("change", () => { explorer.mode = radio.value; get("stage").style.cursor = radio.value === "move" ? "" : "crosshair"; }));
  const recolour = () => { explorer.colour = description.columns[get("colour").value] ?? null; explorer.pressed = -1; explorer.regroup(); explorer.paint(); };
  for (const id of ["colour", "shapes", "rings"]) on(id, "change", recolour);
  for (const id of ["scale", "opacity"]) on(id, "input", () => explorer.paint());
  on("size", "input", () => explorer.look());
  on("clear", "click", () => { get("search").value = ""; explorer.hover(-1); explorer.selection.clear(); });
  on("reset", "click", () => { for (const panel of explorer.picture?.panels ?? []) panel.camera.reset(); explorer.picture?.moved(); });
  on("export", "click", () => { download("rows.csv", explorer.selection.csv(description.columns.find((each) => each.name === description.place))); explorer.say(`${explorer.selection.count.toLocaleString("en")} row numbers exported as rows.csv.`); });
  const search = () => {
    const query = get("search").value.trim(), rows = query ? found(query) : [];
    explorer.selection.take(rows, "replace", rows.length ? `Search for “${query}”` : query ? `No row matches “${query}”.` : "Selection cleared.");
    if (rows.length === 1) explorer.hover(rows[0]);
  };
  on("find", "click", search);
  on("search", "keydown", (event) => { if (event.key === "Enter") search(); }); // no form: the frame of a notebook has none
  on("theme", "click", () => {
    const names = Object.keys(THEMES);
    explorer.theme = names[(names.indexOf(explorer.theme) + 1) % names.length];
    if (explorer.theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = explorer.theme;
    get("theme").textContent = `Theme: ${THEMES[explorer.theme]}`;
    explorer.look(); explorer.paint(); explorer.drawOverlay();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { explorer.look(); explorer.paint(); explorer.drawOverlay(); });
}

function fillPage() {
  get("title").textContent = description.title;
  const worst = ["open", "far", "proved"].map((verdict) => description.certificates.find((card) => card.verdict === verdict)).find(Boolean);
  if (worst) get("verdict").append(make("span", { className: worst.verdict }, `${worst.sign} ${worst.headline}`), `. ${description.n.toLocaleString("en")} rows.`);
  else get("verdict").append(`${description.n.toLocaleString("en")} rows. This model has no certificate.`);
  get("cards").append(...description.certificates.map(certificateCard));
  if (!worst) get("cards").append(make("p", { className: "quiet" }, "This model has no certificate: nothing is proved of it."));
  get("charts").append(...description.charts.map(chartCard));
  get("charts-section").hidden = !description.charts.length;
  get("landmarks-section").hidden = get("rings-label").hidden = !description.landmarks;
  get("rings-label").style.display = description.landmarks ? "" : "none";
  if (description.landmarks) get("landmarks").append(landmarkTable(description.landmarks, (row) => { explorer.selection.take([row], "replace", `Landmark, row ${row}`); explorer.hover(row); get("stage").focus(); }));
  get("notes").append(...description.views.map((view) => make("li", {}, `${view.name}: ${view.note}`)), ...description.notes.map((note) => make("li", {}, note)));
  get("settings").append(pairs(description.settings));
  get("view").append(...description.views.map((view, i) => make("option", { value: i }, view.name)));
  get("beside").parentElement.hidden = description.views.length < 2;
  get("colour").append(make("option", { value: -1 }, "nothing"), ...description.columns.map((column, i) => (column.kind === "text" ? "" : make("option", { value: i, selected: column.name === description.colour }, column.name))));
  const n = description.n;
  get("size").value = n <= 500 ? 9 : n <= 5000 ? 6 : n <= 50000 ? 3.5 : n <= 300000 ? 2 : 1.5;
  get("opacity").value = n <= 5000 ? 0.9 : n <= 100000 ? 0.7 : 0.4;
  get("shapes").checked = n <= 20000;
  get("stage").setAttribute("aria-label", `Scatter plot of ${n.toLocaleString("en")} rows`);
}

async function start() {
  await unpackAll();
  fillPage();
  explorer.colour = description.columns[get("colour").value] ?? null;
  explorer.listAxes();
  try {
    explorer.picture = new Picture(get("points"), description.n);
  } catch (reason) {
    get("failure").textContent = "This browser cannot draw with WebGL, so there is no picture; search, tables, charts and certificate work all the same.";
    get("failure").hidden = false;
  }
  explorer.selection.listeners.push((what) => explorer.selected(what));
  listenToControls();
  explorer.showViews();
  explorer.regroup();
  explorer.paint();
  if (explorer.picture) {
    explorer.picture.listeners.push(() => explorer.drawOverlay());
    listenToPointer();
    listenToKeys();
    new ResizeObserver(() => { explorer.picture.resize(); explorer.captions(); explorer.hover(-1); }).observe(get("stage"));
  }
  document.documentElement.dataset.ready = "true";
}

start();
