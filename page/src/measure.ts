// Measuring: two picked places, a line between them, and its length with the differences of the axes.
import { BufferGeometry, type Color, Float32BufferAttribute, LineBasicMaterial, LineSegments, Vector3 } from 'three';
import type { Units } from './api';
import { fill, h } from './dom';
import type { View } from './view';

export class Measure extends EventTarget {
  isOn = false;
  private readonly pairs: { a: Vector3; b: Vector3; label: HTMLElement }[] = [];
  private first: Vector3 | null = null;
  private readonly material = new LineBasicMaterial({ depthTest: false, transparent: true });
  private readonly lines = new LineSegments(new BufferGeometry(), this.material);

  constructor(private readonly view: View, private readonly layer: HTMLElement, private readonly units: Units) {
    super();
    this.lines.renderOrder = 10;
    this.lines.frustumCulled = false;
    view.scene.add(this.lines);
    view.addEventListener('drawn', () => this.place());
  }

  set colour(colour: Color) { this.material.color.copy(colour); }

  toggle(isOn = !this.isOn): void {
    this.isOn = isOn;
    this.first = null;
    this.draw();
    this.dispatchEvent(new Event('changed'));
  }

  clear(): void {
    this.pairs.length = 0;
    this.toggle(false);
  }

  /** Take a place; the second one ends a line. Returns what to tell. */
  add(at: Vector3): string {
    if (!this.first) {
      this.first = at.clone();
      this.draw();
      return 'Pick the second point.';
    }
    const pair = { a: this.first, b: at.clone(), label: h('div', { class: 'length' }) };
    const { name, scale: [across, up] } = this.units;
    const between = pair.b.clone().sub(pair.a).multiply(new Vector3(across, across, up));
    const [dx, dy, dz] = between.toArray().map((value) => value.toFixed(3));
    const length = `${between.length().toFixed(3)} ${name ?? ''}`.trim();
    fill(pair.label, h('strong', {}, length), ` Δx ${dx} Δy ${dy} Δz ${dz}`);
    this.pairs.push(pair);
    this.first = null;
    this.draw();
    return length;
  }

  private draw(): void {
    const ends = this.pairs.flatMap(({ a, b }) => [...a.toArray(), ...b.toArray()]);
    this.lines.geometry.dispose();
    this.lines.geometry = new BufferGeometry().setAttribute('position', new Float32BufferAttribute(ends, 3));
    this.lines.visible = ends.length > 0;
    const mark = this.first ? [h('div', { class: 'mark' })] : [];
    fill(this.layer, ...this.pairs.map((pair) => pair.label), ...mark);
    this.view.redraw();
  }

  private place(): void {
    for (const { a, b, label } of this.pairs) put(label, this.view.project(a.clone().lerp(b, 0.5)));
    const mark = this.layer.querySelector<HTMLElement>('.mark');
    if (this.first && mark) put(mark, this.view.project(this.first));
  }
}

function put(element: HTMLElement, at: { x: number; y: number } | null): void {
  element.hidden = at === null;
  if (at) element.style.transform = `translate(${at.x}px, ${at.y}px) translate(-50%, -50%)`;
}
