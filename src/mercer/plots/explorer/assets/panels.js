// What stands around the picture: legend, row, tables, certificate. Texts of the data are only ever set as text.

const SHOWN_ROWS = 200, SHOWN_CLASSES = 60, TOOLTIP_COLUMNS = 8;

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function table(heads, rows, caption) {
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", { className: "number" }, cell))));
  const result = make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
  if (caption) result.prepend(make("caption", {}, caption));
  return result;
}

function pairs(entries) {
  return make("table", {}, make("tbody", {}, ...entries.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)))));
}

function rowTable(row) {
  return pairs([["row", String(row)], ...description.columns.map((column) => [column.name, textOf(column, row)])]);
}

function tooltipLines(row, colourBy) {
  const first = description.columns.filter((column) => column === colourBy);
  const others = description.columns.filter((column) => column !== colourBy).slice(0, TOOLTIP_COLUMNS - first.length);
  return pairs([["row", String(row)], ...[...first, ...others].map((column) => [column.name, textOf(column, row)])]);
}

function classLegend(column, pressed, dark, withShapes, choose) {
  const counts = new Int32Array(column.words.length);
  for (const value of column.values) if (value >= 0) counts[value]++;
  const shown = Math.min(column.words.length, SHOWN_CLASSES);
  const items = Array.from({ length: shown }, (_, i) => {
    const mark = make("canvas", { width: 32, height: 32, ariaHidden: "true" });
    mark.style.cssText = "width:16px;height:16px;flex:none";
    drawMark(mark.getContext("2d"), withShapes && i < MOST_CLASSES ? SHAPES[i % SHAPES.length] : "disc", 32, i < MOST_CLASSES ? classColour(i, dark) : "#808080");
    const button = make("button", { type: "button", ariaPressed: String(pressed === i) }, mark, column.words[i] || "(empty)", make("span", { className: "count" }, counts[i].toLocaleString("en")));
    button.addEventListener("click", () => choose(i));
    return make("li", {}, button);
  });
  const list = make("ul", {}, ...items);
  return shown < column.words.length ? [list, make("p", { className: "quiet" }, `and ${column.words.length - shown} more classes`)] : [list];
}

function rampLegend(ends, dark, missing) {
  const canvas = make("canvas", { className: "ramp", width: 256, height: 1 });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Colours from ${ends[0]} to ${ends[2]}`);
  const context = canvas.getContext("2d"), pixels = context.createImageData(256, 1);
  for (let i = 0; i < 256; i++) pixels.data.set([...ramp(i / 255, dark), 255], 4 * i);
  context.putImageData(pixels, 0, 0);
  const texts = make("div", { className: "ends" }, ...ends.map((end) => make("span", {}, end)));
  const result = [canvas, texts];
  if (missing) result.push(make("p", { className: "quiet" }, `${missing.toLocaleString("en")} rows without a value are grey.`));
  return result;
}

function certificateCard(card) {
  return make("div", { className: `card ${card.verdict}` },
    make("h3", {}, `${card.sign} ${card.name ? `${card.name}: ` : ""}${card.headline}`),
    ...card.sentences.map((sentence) => make("p", {}, sentence)),
    make("details", {}, make("summary", {}, "Figures"), pairs(card.figures)));
}

function landmarkTable(landmarks, choose) {
  const rows = landmarks.rows.map((row, i) => {
    const button = make("button", { type: "button", className: "link" }, `row ${row}`);
    button.addEventListener("click", () => choose(row));
    return [String(i + 1), button, format(landmarks.weights[i]), `${(100 * landmarks.shares[i]).toFixed(2)} %`];
  });
  const caption = rows.length < landmarks.count ? `The ${rows.length} heaviest of ${landmarks.count.toLocaleString("en")} landmarks` : `All ${rows.length} landmarks`;
  return table(["", "row", "weight", "share"], rows, caption);
}

function selectedTable(selection, choose) {
  const rows = selection.list(SHOWN_ROWS).map((row) => {
    const button = make("button", { type: "button", className: "link" }, String(row));
    button.addEventListener("click", () => choose(row));
    return [button, ...description.columns.map((column) => textOf(column, row))];
  });
  const caption = selection.count > SHOWN_ROWS ? `The first ${SHOWN_ROWS} of ${selection.count.toLocaleString("en")} selected rows` : `${selection.count} selected rows`;
  return table(["row", ...description.columns.map((column) => column.name)], rows, caption);
}
