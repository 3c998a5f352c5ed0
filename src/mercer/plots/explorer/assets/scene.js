// The picture: three.js draws all rows as points, in one panel or in several side by side that share colours and marks.

const SLOW = 50, QUICK = 24; // milliseconds of a frame while moving, beyond and below which fewer or more rows are drawn
const AT_REST = 180; // milliseconds after which all rows are drawn again
const FEWEST = 20000; // rows that are drawn however slow it is

THREE.ColorManagement.enabled = false; // colours are those of the style sheet

class Picture {
  constructor(canvas, n) {
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: false, powerPreference: "high-performance" });
    this.renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
    this.renderer.autoClear = false;
    this.n = n;
    this.colours = new THREE.BufferAttribute(new Uint8Array(4 * n), 4, true);
    this.order = shuffled(n); // so that any part of the rows is a fair sample of them
    this.panels = [];
    this.part = 1;
    this.materials = new Map();
    this.delay = 0; // milliseconds that the last frame had to wait for those before it
    this.listeners = [];
  }

  // One panel a view; positions fill the cube from -1 to 1, all axes by the same factor.
  setPanels(views, dims, axes) {
    for (const panel of this.panels) for (const points of panel.scene.children) points.geometry.dispose();
    this.panels = views.map((view) => {
      const chosen = views.length === 1 ? axes : [0, 1, 2];
      const positions = cube(chosen.slice(0, dims).map((j) => view.coordinates[j] ?? null), this.n);
      const camera = dims === 3 ? new Orbit() : new Flat();
      return { view, axes: chosen.slice(0, dims), positions, attribute: new THREE.BufferAttribute(positions, 3), camera, scene: new THREE.Scene(), dims };
    });
    this.group();
    this.resize();
  }

  // Which rows have which mark, and which are drawn last, on top: {shape: [rows]}.
  group(shapeOf = this.shapeOf, selected = this.selected, rings = this.rings) {
    Object.assign(this, { shapeOf, selected, rings });
    const members = new Map();
    for (const late of selected ? [0, 1] : [0])
      for (const row of this.order) {
        if (selected && selected[row] !== late) continue;
        const shape = shapeOf ? shapeOf(row) : "disc";
        let list = members.get(shape);
        if (!list) members.set(shape, (list = { rows: new Uint32Array(this.n), count: 0 }));
        list.rows[list.count++] = row;
      }
    for (const panel of this.panels) {
      for (const points of panel.scene.children) points.geometry.dispose();
      panel.scene.clear();
      for (const [shape, list] of members) this.addPoints(panel, list.rows.slice(0, list.count), shape);
      if (rings) this.addPoints(panel, rings, "landmark");
    }
  }

  addPoints(panel, rows, shape) {
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", panel.attribute);
    if (shape !== "landmark") geometry.setAttribute("color", this.colours);
    geometry.setIndex(new THREE.BufferAttribute(rows, 1));
    const points = new THREE.Points(geometry, this.material(shape, panel.dims));
    points.frustumCulled = false;
    points.renderOrder = shape === "landmark" ? 1 : 0;
    panel.scene.add(points);
  }

  material(shape, dims) {
    const key = `${shape} ${dims}`;
    if (!this.materials.has(key)) {
      const canvas = document.createElement("canvas");
      canvas.width = canvas.height = 64;
      const context = canvas.getContext("2d");
      context.fillStyle = "rgba(255, 255, 255, 0.012)"; // below alphaTest; without it the edges of marks mix with black
      context.fillRect(0, 0, 64, 64);
      drawMark(context, shape === "landmark" ? "ring" : shape, 64);
      this.materials.set(key, new THREE.PointsMaterial({
        map: new THREE.CanvasTexture(canvas), sizeAttenuation: false, vertexColors: shape !== "landmark", transparent: true,
        alphaTest: 0.02, depthTest: dims === 3 && shape !== "landmark", depthWrite: dims === 3 && shape !== "landmark",
      }));
    }
    return this.materials.get(key);
  }

  resize() {
    const box = this.renderer.domElement.parentElement.getBoundingClientRect();
    const w = Math.max(box.width - 2, 1), h = Math.max(box.height - 2, 1), count = this.panels.length;
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    this.renderer.setSize(w, h, false);
    this.width = w; this.height = h;
    const across = w >= h * 0.9;
    this.panels.forEach((panel, i) => {
      panel.x = across ? (i * w) / count : 0;
      panel.y = across ? 0 : (i * h) / count;
      panel.w = across ? w / count : w;
      panel.h = across ? h : h / count;
    });
    this.moved();
  }

  panelAt(x, y) { return this.panels.find((p) => x >= p.x && x < p.x + p.w && y >= p.y && y < p.y + p.h); }

  // Pixels of all rows in a panel, measured from the corner of the whole picture; computed once for every position of the eye.
  screen(panel) {
    if (!panel.screen) {
      panel.camera.update(panel.w, panel.h);
      panel.screen = projected(panel.camera.three, panel.positions, panel.w, panel.h);
      for (let i = 0; i < panel.screen.length; i += 3) { panel.screen[i] += panel.x; panel.screen[i + 1] += panel.y; }
    }
    return panel.screen;
  }

  // The row nearest to a pixel, at most so far away; of rows at one place the one in front. -1 if there is none.
  nearest(x, y, reach) {
    const panel = this.panelAt(x, y);
    if (!panel) return -1;
    const screen = this.screen(panel);
    let best = -1, least = reach * reach, front = Infinity;
    for (let i = 0, row = 0; row < this.n; i += 3, row++) {
      const dx = screen[i] - x, dy = screen[i + 1] - y, far = dx * dx + dy * dy;
      if (far < least || (far === least && screen[i + 2] < front)) { best = row; least = far; front = screen[i + 2]; }
    }
    return best;
  }

  // Something moves: draw it as soon as the screen is ready, with fewer rows if that is too slow, and with all when it rests.
  moved(always = true) {
    for (const panel of this.panels) if (always) panel.screen = null;
    this.moving = true;
    clearTimeout(this.rest);
    this.rest = setTimeout(() => { this.moving = false; this.draw(); }, Math.max(AT_REST, 3 * this.delay));
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    const asked = performance.now();
    this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.delay = performance.now() - asked; this.render(); });
  }

  render() {
    if (this.moving && this.delay > SLOW) this.part = Math.max(this.part * Math.max(0.1, (0.8 * SLOW) / this.delay), Math.min(1, FEWEST / this.n));
    else if (this.moving && this.delay < QUICK) this.part = Math.min(1, this.part * 1.3);
    const renderer = this.renderer;
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.setScissorTest(true);
    for (const panel of this.panels) {
      panel.camera.update(panel.w, panel.h);
      const place = [panel.x, this.height - panel.y - panel.h, panel.w, panel.h];
      renderer.setViewport(...place);
      renderer.setScissor(...place);
      for (const points of panel.scene.children) {
        const total = points.geometry.index.count, count = this.moving ? Math.ceil(this.part * total) : total;
        points.geometry.setDrawRange(total - count, count);
      }
      renderer.render(panel.scene, panel.camera.three);
    }
    for (const listener of this.listeners) listener();
  }

  look({ size, back, ink }) {
    this.renderer.setClearColor(new THREE.Color(back));
    for (const [key, material] of this.materials) {
      material.size = key.startsWith("landmark") ? size + 5 : key.startsWith("disc") ? size : size * 1.35;
      if (key.startsWith("landmark")) material.color.set(ink);
    }
    this.draw();
  }
}

function cube(axes, n) {
  const positions = new Float32Array(3 * n);
  const ranges = axes.map((values) => (values ? range(values) : [0, 0]));
  const widest = Math.max(...ranges.map(([low, high]) => high - low)) || 1;
  axes.forEach((values, j) => {
    const middle = (ranges[j][0] + ranges[j][1]) / 2;
    if (values) for (let row = 0; row < n; row++) positions[3 * row + j] = (2 * (values[row] - middle)) / widest;
  });
  return positions;
}

function range(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  return [low, high];
}

function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  let seed = 1;
  for (let i = n - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
