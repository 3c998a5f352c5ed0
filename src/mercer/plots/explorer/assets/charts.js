// Charts of a few curves as SVG, each with its figures in a table for who does not see it.

const SVG = "http://www.w3.org/2000/svg";
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const SPACE = { left: 62, right: 12, top: 10, bottom: 34, width: 420, height: 230 };

function svg(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

function ticks(low, high, log) {
  if (log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const step = Math.max(1, Math.ceil((last - first) / 5));
    const powers = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, i) => 10 ** (first + i * step));
    return powers.length > 1 ? powers : [low, high];
  }
  const rough = (high - low) / 4, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= rough);
  const result = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-9; at += step) result.push(Math.abs(at) < step * 1e-9 ? 0 : at);
  return result;
}

function axis(values, log) {
  const known = values.filter((value) => value !== null && (!log || value > 0));
  let low = Math.min(...known), high = Math.max(...known);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const f = log ? Math.log : (value) => value;
  const whole = !log && known.every(Number.isInteger); // counts have no halves
  return { low, high, ticks: ticks(low, high, log).filter((at) => !whole || Number.isInteger(at)), share: (value) => (f(value) - f(low)) / (f(high) - f(low)), log };
}

function tickText(value, all) {
  const width = Math.abs(all[all.length - 1] - all[0]) || Math.abs(value);
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5)) return value.toExponential(Math.abs(value) > 3 * width ? 4 : 0);
  const digits = Math.min(6, Math.max(0, Math.ceil(-Math.log10(width)) + 1));
  return Number.isInteger(value) ? String(value) : value.toFixed(digits);
}

function drawChart(chart) {
  const { left, right, top, bottom, width, height } = SPACE;
  const all = (key) => chart.series.flatMap((series) => series[key]);
  const xs = axis(chart.mark ? [...all("x"), chart.mark] : all("x"), chart.log_x);
  const ys = axis(chart.bars ? [...all("y"), 0] : all("y"), chart.log_y);
  const px = (value) => left + xs.share(value) * (width - left - right);
  const py = (value) => height - bottom - ys.share(value) * (height - top - bottom);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${chart.title}: ${chart.y} by ${chart.x}` });
  for (const at of ys.ticks) {
    picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: py(at), y2: py(at) }));
    picture.append(svg("text", { x: left - 6, y: py(at) + 4, "text-anchor": "end" }, tickText(at, ys.ticks)));
  }
  for (const at of xs.ticks)
    picture.append(svg("text", { x: px(at), y: height - bottom + 15, "text-anchor": "middle" }, tickText(at, xs.ticks)));
  picture.append(svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, chart.x));
  picture.append(svg("text", { x: 12, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(height - bottom) / 2})` }, chart.y));
  if (chart.mark) picture.append(svg("line", { class: "mark", x1: px(chart.mark), x2: px(chart.mark), y1: top, y2: height - bottom }));
  chart.series.forEach((series, number) => drawSeries(picture, series, number, { px, py, base: height - bottom, log: chart.log_y }));
  return picture;
}

function drawSeries(picture, series, number, { px, py, log }) {
  const colour = CLASSES[number % (CLASSES.length - 1)];
  let path = "", open = false;
  series.x.forEach((x, i) => {
    const y = series.y[i], drawn = y !== null && (!log || y > 0);
    if (drawn) path += `${open ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`;
    if (drawn && series.x.length <= 60) {
      const dot = svg("circle", { cx: px(x), cy: py(y), r: 3, fill: colour });
      dot.append(svg("title", {}, `${series.name}: ${format(x)}, ${format(y)}`));
      picture.append(dot);
    }
    open = drawn;
  });
  picture.append(svg("path", { d: path, fill: "none", stroke: colour, "stroke-width": 1.8, "stroke-dasharray": DASHES[number % DASHES.length] }));
}

function chartCard(chart) {
  const card = make("div", { className: "card" }, make("h3", {}, chart.title), drawChart(chart));
  if (chart.series.length > 1) {
    const key = make("p", { className: "quiet" });
    chart.series.forEach((series, number) => {
      const line = svg("svg", { viewBox: "0 0 26 8", "aria-hidden": "true" });
      line.style.cssText = "width:26px;height:8px;display:inline-block;margin:0 4px 0 8px";
      line.append(svg("line", { x1: 0, x2: 26, y1: 4, y2: 4, stroke: CLASSES[number % (CLASSES.length - 1)], "stroke-width": 2, "stroke-dasharray": DASHES[number % DASHES.length] }));
      key.append(line, series.name);
    });
    card.append(key);
  }
  card.append(make("p", { className: "quiet" }, chart.note));
  const rows = chart.series.flatMap((series) => series.x.map((x, i) => [series.name, format(x), series.y[i] === null ? "" : format(series.y[i])]));
  const scroll = make("div", { className: "scroll" }, table(["curve", chart.x, chart.y], rows));
  card.append(make("details", {}, make("summary", {}, "Figures"), scroll));
  return card;
}
