// Where one looks from: a plane that is moved and zoomed, or an orbit around a point. Both know where rows are on the screen.

const FIT = 0.92; // of the shorter side, that the data fill at first
const FIELD = 40; // degrees

class Flat {
  constructor() { this.three = new THREE.OrthographicCamera(-1, 1, 1, -1, -10, 10); this.reset(); }
  reset() { this.x = this.y = 0; this.zoom = 1; }
  unit(w, h) { return (FIT * this.zoom * Math.min(w, h)) / 2; } // pixels
  drag(dx, dy, w, h) { this.x -= dx / this.unit(w, h); this.y += dy / this.unit(w, h); }
  zoomBy(factor, px, py, w, h) { // the point under the pointer stays there
    const before = this.unit(w, h);
    this.zoom = Math.min(Math.max(this.zoom * factor, 0.1), 5000);
    const change = 1 / before - 1 / this.unit(w, h);
    this.x += (px - w / 2) * change;
    this.y -= (py - h / 2) * change;
  }
  update(w, h) {
    const camera = this.three, unit = this.unit(w, h);
    [camera.left, camera.right, camera.top, camera.bottom] = [-w / 2 / unit, w / 2 / unit, h / 2 / unit, -h / 2 / unit];
    camera.position.set(this.x, this.y, 1);
    camera.updateProjectionMatrix();
    camera.updateMatrixWorld();
  }
}

class Orbit {
  constructor() { this.three = new THREE.PerspectiveCamera(FIELD, 1, 0.01, 100); this.reset(); }
  reset() { this.azimuth = 0.6; this.elevation = 0.35; this.distance = 3.7; }
  drag(dx, dy) {
    this.azimuth -= dx * 0.008;
    this.elevation = Math.min(Math.max(this.elevation + dy * 0.008, -1.55), 1.55);
  }
  zoomBy(factor) { this.distance = Math.min(Math.max(this.distance / factor, 0.05), 40); }
  update(w, h) {
    const camera = this.three, flat = Math.cos(this.elevation) * this.distance;
    camera.position.set(flat * Math.sin(this.azimuth), Math.sin(this.elevation) * this.distance, flat * Math.cos(this.azimuth));
    camera.lookAt(0, 0, 0);
    camera.aspect = w / h;
    camera.fov = w >= h ? FIELD : FIELD * Math.min(h / w, 2); // a narrow window shows all of it too
    camera.updateProjectionMatrix();
    camera.updateMatrixWorld();
  }
}

// Pixels and depth of all rows in a panel of w by h; rows behind the eye are NaN.
function projected(camera, positions, w, h) {
  const n = positions.length / 3, screen = new Float32Array(3 * n);
  const m = camera.projectionMatrix.clone().multiply(camera.matrixWorldInverse).elements;
  for (let i = 0; i < 3 * n; i += 3) {
    const x = positions[i], y = positions[i + 1], z = positions[i + 2];
    const by = m[3] * x + m[7] * y + m[11] * z + m[15];
    if (by <= 0) { screen[i] = screen[i + 1] = screen[i + 2] = NaN; continue; }
    screen[i] = (((m[0] * x + m[4] * y + m[8] * z + m[12]) / by + 1) * w) / 2;
    screen[i + 1] = ((1 - (m[1] * x + m[5] * y + m[9] * z + m[13]) / by) * h) / 2;
    screen[i + 2] = (m[2] * x + m[6] * y + m[10] * z + m[14]) / by;
  }
  return screen;
}
