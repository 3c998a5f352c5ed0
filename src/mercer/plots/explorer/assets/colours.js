// Colours that colour-blind readers tell apart (Okabe and Ito; viridis), and marks for those who see none.

const CLASSES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "ink"];
const SHAPES = ["disc", "square", "triangle", "diamond", "cross", "ring", "star"];
const MOST_CLASSES = CLASSES.length * SHAPES.length; // 8 and 7 have no common factor: each pair occurs once
const NONE = [128, 128, 128];
const VIRIDIS = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];

// The last of the colours is black on white and white on black; grey is for rows without a class.
const classColour = (i, dark) => (i % CLASSES.length === CLASSES.length - 1 ? (dark ? "#e8eaee" : "#1b1d22") : CLASSES[i % CLASSES.length]);
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const RAMP = VIRIDIS.map(rgb);

// A colour of the ramp; the end that the background would swallow is left out.
function ramp(share, dark) {
  const at = (dark ? 0.25 + 0.75 * share : 0.9 * share) * (RAMP.length - 1);
  const low = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[low].map((value, i) => value + (at - low) * (RAMP[low + 1][i] - value));
}

// Where each row of a column of numbers lies between 0 and 1, and what 0, ½ and 1 stand for.
function shares(column, scale) {
  const values = column.values;
  const known = Float64Array.from(values).filter((value) => !Number.isNaN(value) && (scale !== "log" || value > 0)).sort();
  const result = new Float32Array(values.length).fill(NaN);
  if (!known.length) return { result, ends: ["", "", ""] };
  const low = known[0], high = known[known.length - 1], width = high - low || 1;
  const place = {
    linear: (value) => (value - low) / width,
    log: (value) => (value > 0 ? Math.log(value / low) / (Math.log(high / low) || 1) : NaN),
    rank: (value) => firstAtLeast(known, value) / Math.max(known.length - 1, 1),
  }[scale];
  for (let row = 0; row < values.length; row++) if (!Number.isNaN(values[row])) result[row] = place(values[row]);
  const middle = { linear: (low + high) / 2, log: Math.sqrt(low) * Math.sqrt(high), rank: known[known.length >> 1] }[scale];
  return { result, ends: [low, middle, high].map(format) };
}

function firstAtLeast(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// One mark in white on nothing, for a texture or a legend.
function drawMark(context, shape, size, colour = "#fff") {
  const c = size / 2, r = size * 0.44;
  const corners = (count, turn, radius = () => r) =>
    Array.from({ length: count }, (_, i) => [c + radius(i) * Math.sin(turn + (2 * Math.PI * i) / count), c - radius(i) * Math.cos(turn + (2 * Math.PI * i) / count)]);
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = size * 0.17;
  context.beginPath();
  if (shape === "disc") context.arc(c, c, r, 0, 2 * Math.PI);
  else if (shape === "ring") context.arc(c, c, r * 0.8, 0, 2 * Math.PI);
  else if (shape === "cross") for (const [x, y] of [[1, 1], [1, -1]]) { context.moveTo(c - x * r * 0.8, c - y * r * 0.8); context.lineTo(c + x * r * 0.8, c + y * r * 0.8); }
  else {
    const points = { square: () => corners(4, Math.PI / 4), triangle: () => corners(3, 0), diamond: () => corners(4, 0), star: () => corners(10, 0, (i) => (i % 2 ? r * 0.45 : r)) }[shape]();
    points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
    context.closePath();
  }
  if (shape === "ring" || shape === "cross") context.stroke(); else context.fill();
}
