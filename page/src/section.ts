// Section planes: a point is drawn where normal · point + distance >= 0 for each of them.
import { Box3, Plane, Vector3, Vector4 } from 'three';
import type { Box } from './api';
import type { View } from './view';

/** A section in coordinates of the scene; of a plane its normal, and its distance as above. */
export interface SectionState { box: Box | null; planes: [number, number, number, number][] }

const MOST = 8; // six of a box, and two others

export const CLIPPING = /* glsl */ `
  uniform vec4 clips[${MOST}];
  uniform int clipCount;
  bool isClipped(vec3 at) {
    for (int k = 0; k < ${MOST}; k++) {
      if (k < clipCount && dot(clips[k].xyz, at) + clips[k].w < 0.0) return true;
    }
    return false;
  }`;

export class Section extends EventTarget {
  readonly uniforms = {
    clips: { value: Array.from({ length: MOST }, () => new Vector4()) },
    clipCount: { value: 0 },
  };
  box: Box3 | null = null;
  planes: Plane[] = [];

  constructor(private readonly view: View) { super(); }

  set(box: Box3 | null, planes: Plane[] = this.planes): void {
    this.box = box;
    this.planes = planes.slice(0, 2);
    const all = this.all();
    all.forEach((plane, k) => this.uniforms.clips.value[k]?.set(...plane.normal.toArray(), plane.constant));
    this.uniforms.clipCount.value = all.length;
    this.view.redraw();
    this.dispatchEvent(new Event('changed'));
  }

  state(): SectionState {
    const { box, planes, view: { origin } } = this;
    return {
      box: box && [...this.view.world(box.min), ...this.view.world(box.max)],
      planes: planes.map(({ normal, constant }) => [...normal.toArray(), constant - normal.dot(origin)]),
    };
  }

  restore({ box, planes }: SectionState): void {
    this.set(box && this.view.localBox(box), planes.map(([x, y, z, constant]) => {
      const normal = new Vector3(x, y, z);
      return new Plane(normal, constant + normal.dot(this.view.origin));
    }));
  }

  isClipped(point: Vector3): boolean {
    return this.all().some((plane) => plane.distanceToPoint(point) < 0);
  }

  private all(): Plane[] {
    const planes = [...this.planes];
    if (this.box) {
      for (const axis of [0, 1, 2]) {
        const normal = new Vector3().setComponent(axis, 1);
        planes.push(new Plane(normal, -this.box.min.getComponent(axis)));
        planes.push(new Plane(normal.clone().negate(), this.box.max.getComponent(axis)));
      }
    }
    return planes;
  }
}
