// Runs in the browser for benchmarks/explorer.py: frame times of the explorer's page, of plotly and of regl-scatterplot.

const FRAMES = 30, LEAST = 4, LONGEST = 10000; // milliseconds after which a slow renderer has shown enough
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6d1f", "#222222"];

// The median time between redraws while step moves something before each of them.
async function frames(step) {
  const times = [];
  const began = performance.now();
  let last = null;
  for (let i = 0; i < FRAMES && (times.length < LEAST || performance.now() - began < LONGEST); i++) {
    step(i);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    if (last !== null) times.push(now - last);
    last = now;
  }
  times.sort((a, b) => a - b);
  return times[times.length >> 1];
}

async function ours([dims, all]) {
  document.querySelector(`[name=dims][value="${dims}"]`).click();
  await new Promise((done) => setTimeout(done, 500));
  const picture = explorer.picture, panel = picture.panels[0];
  picture.part = 1;
  const time = await frames((i) => {
    panel.camera.drag(i % 2 ? 9 : -7, 2, panel.w, panel.h);
    picture.moved();
    if (all) picture.moving = false;
  });
  return [time, all ? 1 : picture.part];
}

function pointer() {
  const picture = explorer.picture, panel = picture.panels[0];
  panel.screen = null;
  const took = (act) => {
    const began = performance.now();
    act();
    return performance.now() - began;
  };
  const lasso = () => inLasso(picture.screen(panel), picture.n, [[0, 0], [panel.w, 0], [panel.w / 2, panel.h]], panel);
  return [
    took(() => picture.nearest(panel.w / 2, panel.h / 2, 12)),
    took(() => picture.nearest(panel.w / 3, panel.h / 2, 12)),
    took(() => explorer.selection.take(lasso(), "replace", "Lasso")),
  ];
}

function points(n) {
  let seed = 12345;
  const random = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 4294967296;
  const near = () => random() + random() + random() - 1.5;
  const [x, y, z] = [0, 1, 2].map(() => new Float32Array(n)), classes = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    const k = (classes[i] = Math.floor(8 * random()));
    x[i] = (2 * Math.cos(k) + near()) / 4;
    y[i] = (2 * Math.sin(k) + near()) / 4;
    z[i] = near() / 4;
  }
  return { x, y, z, classes };
}

async function plotly([n, dims]) {
  const { x, y, z, classes } = points(n), element = document.getElementById("stage");
  const marker = { size: 3, color: Array.from(classes, (k) => COLOURS[k]) };
  const trace = dims === 3 ? { type: "scatter3d", x, y, z } : { type: "scattergl", x, y };
  await Plotly.newPlot(element, [{ mode: "markers", marker, ...trace }], { width: 900, height: 560 }, {});
  const eye = (i) => ({ "scene.camera.eye": { x: 1.5 * Math.cos(i / 9), y: 1.5 * Math.sin(i / 9), z: 0.7 } });
  const range = (i) => ({ "xaxis.range": [-1 + Math.sin(i / 9) / 8, 1 + Math.sin(i / 9) / 8] });
  return frames((i) => Plotly.relayout(element, dims === 3 ? eye(i) : range(i)));
}

async function regl([n]) {
  const { x, y, classes } = points(n), canvas = document.getElementById("canvas");
  const size = { width: 900, height: 560, pointSize: 3 };
  const plot = createScatterplot.default({ canvas, pointColor: COLOURS, colorBy: "valueA", ...size });
  await plot.draw({ x, y, valueA: Array.from(classes) });
  return frames((i) => {
    plot.set({ cameraTarget: [Math.sin(i / 9) / 8, 0] });
    plot.redraw();
  });
}

const late = (milliseconds) => new Promise((_, refuse) => setTimeout(() => refuse(new Error("late")), milliseconds));
