// What is under the pointer: the front-most point near it, triangle of an element, or plane.
import { Matrix4, Raycaster, Sphere, Vector2, Vector3 } from 'three';
import type { Clouds, Node } from './clouds';
import type { Elements } from './elements';
import type { Planes } from './planes';
import type { Section } from './section';
import type { View } from './view';

export type Hit =
  | { kind: 'point'; node: Node; index: number; at: Vector3; depth: number }
  | { kind: 'element'; id: string; at: Vector3; depth: number }
  | { kind: 'plane'; id: number; at: Vector3; depth: number };

const NEAR = 7; // CSS pixels that a point may be from the pointer, where nothing is under that
const SAME_DEPTH = 1.01; // a scan lies on walls: points this much deeper are still in front of them

export class Picker {
  private readonly ray = new Raycaster();

  constructor(
    private readonly view: View, private readonly section: Section, private readonly clouds: Clouds,
    private readonly elements: Elements, private readonly planes: Planes,
  ) {}

  /** x and y in CSS pixels of the picture. */
  pick(x: number, y: number): Hit | null {
    const { clientWidth, clientHeight } = this.view.renderer.domElement;
    this.ray.setFromCamera(new Vector2(2 * x / clientWidth - 1, 1 - 2 * y / clientHeight), this.view.camera);
    const point = this.point(x, y), element = this.element(), plane = this.plane();
    const solid = element && plane ? (element.depth <= plane.depth * SAME_DEPTH ? element : plane) : element ?? plane;
    if (point && solid) return point.covers && point.depth <= solid.depth * SAME_DEPTH ? point.hit : solid;
    return point?.hit ?? solid;
  }

  private element(): Hit | null {
    for (const hit of this.ray.intersectObjects([...this.elements.meshes()], false)) {
      const id = hit.face && this.elements.at(hit.object, hit.face.a);
      if (id && !this.section.isClipped(hit.point)) return { kind: 'element', id, at: hit.point, depth: hit.distance };
    }
    return null;
  }

  private plane(): Hit | null {
    if (!this.planes.mesh.visible) return null;
    for (const hit of this.ray.intersectObject(this.planes.mesh, false)) {
      const plane = this.planes.owner(hit.faceIndex ?? -1);
      if (plane && !this.section.isClipped(hit.point)) {
        return { kind: 'plane', id: plane.plane_id, at: hit.point, depth: hit.distance };
      }
    }
    return null;
  }

  /** The front-most point that is drawn over the pointer, else the one nearest to it. */
  private point(x: number, y: number): { hit: Hit; depth: number; covers: boolean } | null {
    const { camera } = this.view;
    const { clientWidth: width, clientHeight: height } = this.view.renderer.domElement;
    const radius = Math.max(this.clouds.size / 2, 1);
    const at = new Vector3();
    let best: { node: Node; index: number; at: Vector3 } | null = null;
    let front = Infinity, least = NEAR * NEAR;
    for (const node of this.clouds.seen()) {
      if (!this.isNear(node)) continue;
      const position = node.points.geometry.attributes.position;
      if (!position) continue;
      const m = new Matrix4().multiplyMatrices(camera.matrixWorldInverse, node.points.matrixWorld);
      const e = m.premultiply(camera.projectionMatrix).elements as unknown as number[] & { length: 16 };
      const [e0 = 0, e1 = 0, , e3 = 0, e4 = 0, e5 = 0, , e7 = 0, e8 = 0, e9 = 0, , e11 = 0, e12 = 0, e13 = 0, , e15 = 0] = e;
      for (let k = 0; k < position.count; k++) {
        const px = position.getX(k), py = position.getY(k), pz = position.getZ(k);
        const w = e3 * px + e7 * py + e11 * pz + e15;
        if (w <= 0 || w >= front) continue;
        const dx = ((e0 * px + e4 * py + e8 * pz + e12) / w + 1) / 2 * width - x;
        const dy = (1 - (e1 * px + e5 * py + e9 * pz + e13) / w) / 2 * height - y;
        const off = dx * dx + dy * dy;
        const covers = off <= radius * radius;
        if ((!covers && off >= least) || this.clouds.isHidden(node, k)) continue;
        at.set(px, py, pz).applyMatrix4(node.points.matrixWorld);
        if (this.section.isClipped(at)) continue;
        if (covers) {
          front = w;
          least = 0;
        } else least = off;
        best = { node, index: k, at: at.clone() };
      }
    }
    if (!best) return null;
    const depth = camera.position.distanceTo(best.at);
    return { hit: { kind: 'point', ...best, depth }, depth, covers: front < Infinity };
  }

  /** Whether the ball around a tile comes near the ray. */
  private isNear(node: Node): boolean {
    const { geometry, matrixWorld } = node.points;
    if (!geometry.boundingSphere) geometry.computeBoundingSphere();
    const ball = new Sphere().copy(geometry.boundingSphere as Sphere).applyMatrix4(matrixWorld);
    const distance = this.view.camera.position.distanceTo(ball.center);
    const pixel = 2 * Math.tan(this.view.camera.fov * Math.PI / 360) / this.view.renderer.domElement.clientHeight;
    return this.ray.ray.distanceToPoint(ball.center) <= ball.radius + (distance + ball.radius) * pixel * NEAR;
  }
}
