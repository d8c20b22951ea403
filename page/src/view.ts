// The picture: camera, controls, and a loop that draws when something changed. Coordinates in it are those of the
// scene minus its origin, so that float32 is enough for the graphics card.
import {
  Box3, type Color, LinearSRGBColorSpace, PerspectiveCamera, Scene, Vector2, Vector3, WebGLRenderer,
} from 'three';
import { OrbitControls } from 'three/examples/jsm/controls/OrbitControls.js';
import type { Box, Camera, Vec } from './api';
import { DepthShading } from './shading';

const FLIGHT = 450; // ms
const STILL_FRAMES = 4;

export class View extends EventTarget {
  readonly scene = new Scene();
  readonly camera = new PerspectiveCamera(50, 1, 0.1, 1e5);
  readonly renderer: WebGLRenderer;
  readonly controls: OrbitControls;
  readonly origin: Vector3;
  readonly shading = new DepthShading();
  /** Run before each frame; true while there is more to come. */
  readonly beforeFrame: (() => boolean)[] = [];
  /** All that there is, for the near and far planes and for `fit`. */
  extent = new Box3();
  private isDirty = true;
  private still = 0;
  private flight: { from: Camera; to: Camera; start: number } | null = null;

  constructor(canvas: HTMLCanvasElement, origin: Vec) {
    super();
    this.origin = new Vector3(...origin);
    this.renderer = new WebGLRenderer({ canvas, antialias: true, preserveDrawingBuffer: true });
    this.renderer.outputColorSpace = LinearSRGBColorSpace; // our shaders give colours as they are shown
    this.renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
    this.camera.up.set(0, 0, 1);
    this.camera.position.set(-30, -40, 30);
    this.controls = new OrbitControls(this.camera, canvas);
    this.controls.zoomToCursor = true;
    this.controls.screenSpacePanning = true;
    this.controls.maxPolarAngle = Math.PI * 0.995;
    this.controls.addEventListener('change', () => this.redraw());
    this.controls.addEventListener('start', () => { this.flight = null; });
    this.controls.addEventListener('end', () => this.moved());
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement as HTMLElement);
    this.resize();
    requestAnimationFrame(this.frame);
  }

  redraw(): void { this.isDirty = true; this.still = 0; }

  background(colour: Color): void { this.scene.background = colour; this.redraw(); }

  local(point: readonly number[]): Vector3 {
    return new Vector3(...(point as Vec)).sub(this.origin);
  }

  world(point: Vector3): Vec { return point.clone().add(this.origin).toArray(); }

  localBox(box: Box): Box3 {
    return new Box3(this.local(box.slice(0, 3)), this.local(box.slice(3)));
  }

  /** Resolves when all tiles of the view are there, drawn, and the camera rests. */
  whenIdle(): Promise<void> {
    this.still = 0;
    return new Promise((done) => {
      const ask = () => (this.still >= STILL_FRAMES ? done() : requestAnimationFrame(ask));
      ask();
    });
  }

  state(): Camera {
    return {
      eye: this.world(this.camera.position), target: this.world(this.controls.target),
      up: this.camera.up.toArray(), fov: this.camera.fov,
    };
  }

  restore(state: Camera, isSudden = false): void {
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (isSudden || calm) {
      this.flight = null;
      this.place(state);
      this.moved();
    } else {
      this.flight = { from: this.state(), to: state, start: performance.now() };
    }
    this.redraw();
  }

  /** Fly so that a box fills the picture, along a direction or along that of now. */
  fit(box: Box3, direction?: Vector3, isSudden = false): void {
    if (box.isEmpty()) return;
    this.resize(); // panels may have just made room
    const target = box.getCenter(new Vector3());
    const along = direction?.clone() ?? this.camera.position.clone().sub(this.controls.target);
    const eye = target.clone().addScaledVector(along.normalize(), this.distance(box, along));
    this.restore({ ...this.state(), eye: this.world(eye), target: this.world(target) }, isSudden);
  }

  /** From how far along a direction all corners of a box are in the picture. */
  private distance(box: Box3, along: Vector3): number {
    const right = this.camera.up.clone().cross(along).normalize();
    const up = along.clone().cross(right);
    const tall = Math.tan(this.camera.fov * Math.PI / 360) * 0.9;
    const centre = box.getCenter(new Vector3());
    let distance = 0.1;
    for (let k = 0; k < 8; k++) {
      const corner = new Vector3(...[0, 1, 2].map((axis) => (k >> axis & 1 ? box.max : box.min).getComponent(axis)) as Vec).sub(centre);
      const across = Math.max(Math.abs(corner.dot(up)) / tall, Math.abs(corner.dot(right)) / (tall * this.camera.aspect));
      distance = Math.max(distance, corner.dot(along) + across);
    }
    return distance;
  }

  /** Where a local point is in the picture, in CSS pixels; null behind the camera. */
  project(point: Vector3): Vector2 | null {
    const seen = point.clone().project(this.camera);
    const { clientWidth, clientHeight } = this.renderer.domElement;
    if (seen.z > 1) return null;
    return new Vector2((seen.x + 1) / 2 * clientWidth, (1 - seen.y) / 2 * clientHeight);
  }

  /** Draw frames of a turn around the target, one after the other; gives the milliseconds of each. */
  async turn(frames: number): Promise<number[]> {
    const gl = this.renderer.getContext();
    const taken: number[] = [];
    for (let k = 0; k < frames; k++) {
      const from = performance.now();
      const arm = this.camera.position.clone().sub(this.controls.target).applyAxisAngle(new Vector3(0, 0, 1), Math.PI / 180);
      this.camera.position.copy(this.controls.target).add(arm);
      this.controls.update();
      this.draw();
      gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits until it is drawn
      taken.push(performance.now() - from);
      await new Promise(requestAnimationFrame);
    }
    return taken;
  }

  private place(state: Camera): void {
    this.camera.position.copy(this.local(state.eye));
    this.controls.target.copy(this.local(state.target));
    if (state.fov !== this.camera.fov) {
      this.camera.fov = state.fov;
      this.camera.updateProjectionMatrix();
    }
    this.controls.update();
  }

  private moved(): void { this.dispatchEvent(new Event('moved')); }

  private resize(): void {
    const { clientWidth, clientHeight } = this.renderer.domElement.parentElement as HTMLElement;
    const size = this.renderer.getSize(new Vector2());
    if (!clientWidth || !clientHeight || (size.x === clientWidth && size.y === clientHeight)) return;
    this.renderer.setSize(clientWidth, clientHeight, false);
    this.camera.aspect = clientWidth / clientHeight;
    this.camera.updateProjectionMatrix();
    this.draw(); // a canvas of another size is empty
  }

  private draw(): void {
    this.isDirty = false;
    this.shading.render(this.renderer, this.scene, this.camera);
    this.dispatchEvent(new Event('drawn'));
  }

  private fly(): void {
    if (!this.flight) return;
    const { from, to, start } = this.flight;
    const part = Math.min((performance.now() - start) / FLIGHT, 1);
    const eased = part * part * (3 - 2 * part);
    const between = (a: Vec, b: Vec) => a.map((value, k) => value + ((b[k] as number) - value) * eased) as Vec;
    this.place({ ...to, eye: between(from.eye, to.eye), target: between(from.target, to.target) });
    if (part === 1) {
      this.flight = null;
      this.moved();
    }
    this.redraw();
  }

  private clip(): void {
    const distance = this.camera.position.distanceTo(this.controls.target);
    const radius = this.extent.isEmpty() ? 1e3 : this.extent.getSize(new Vector3()).length();
    this.camera.far = (distance + radius) * 2;
    this.camera.near = Math.max(Math.min(distance / 100, this.camera.far / 1e3), this.camera.far / 1e6);
    this.camera.updateProjectionMatrix();
  }

  private readonly frame = (): void => {
    requestAnimationFrame(this.frame);
    this.fly();
    this.clip();
    this.camera.updateMatrixWorld();
    let isBusy = this.flight !== null;
    for (const each of this.beforeFrame) isBusy = each() || isBusy;
    if (this.isDirty) this.draw();
    this.still = isBusy ? 0 : this.still + 1;
  };
}
