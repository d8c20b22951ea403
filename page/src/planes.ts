// Planes with their outlines: one mesh and one set of lines for all of them.
import {
  BufferAttribute, BufferGeometry, DoubleSide, LineSegments, Mesh, ShaderMaterial, ShapeUtils, Vector2, Vector3,
} from 'three';
import { json, type Plane, type Vec } from './api';
import { category } from './scales';
import { CLIPPING, type Section } from './section';
import type { View } from './view';

const VERTEX = /* glsl */ `
  attribute vec3 colour;
  varying vec3 shade, place;
  void main() {
    shade = colour;
    place = (modelMatrix * vec4(position, 1.0)).xyz;
    // a thousandth nearer to the eye, which is the same place of the picture: the walls that planes lie on do not hide them
    vec4 at = modelViewMatrix * vec4(position, 1.0);
    gl_Position = projectionMatrix * vec4(at.xyz * 0.999, 1.0);
  }`;
const FRAGMENT = /* glsl */ `
  varying vec3 shade, place;
  uniform float opacity;
  ${CLIPPING}
  void main() {
    if (isClipped(place)) discard;
    gl_FragColor = vec4(shade, opacity);
  }`;

export class Planes {
  rows: Plane[] = [];
  chosen: Set<number> | null = null;
  selected: number | null = null;
  isVisible = true;
  /** Without their faces: behind elements that a list shows. */
  isFaded = false;
  private accent: Vec = [0, 0, 0];
  private readonly faces = new Mesh(new BufferGeometry());
  private readonly lines = new LineSegments(new BufferGeometry());
  /** The plane of each triangle. */
  private owners: Plane[] = [];

  constructor(private readonly view: View, section: Section) {
    const material = (opacity: number) => new ShaderMaterial({
      vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms: { opacity: { value: opacity }, ...section.uniforms },
      transparent: true, depthWrite: false, side: DoubleSide,
    });
    this.faces.material = material(0.35);
    this.lines.material = material(1);
    this.faces.renderOrder = this.lines.renderOrder = 3;
    this.faces.frustumCulled = this.lines.frustumCulled = false;
    view.scene.add(this.faces, this.lines);
  }

  async load(path: string): Promise<void> {
    const said = await json<Plane[] | { rows: Plane[] }>(path);
    this.rows = Array.isArray(said) ? said : said.rows;
    this.paint();
  }

  theme(accent: Vec): void {
    this.accent = accent;
    this.paint();
  }

  get mesh(): Mesh { return this.faces; }
  owner(face: number): Plane | undefined { return this.owners[face]; }

  /** Make the geometry of the planes that are seen. */
  paint(): void {
    const corners: number[] = [], colours: number[] = [], ends: number[] = [], lineColours: number[] = [];
    this.owners = [];
    for (const plane of this.rows) {
      if (!this.isVisible || (this.chosen && !this.chosen.has(plane.plane_id))) continue;
      const colour = plane.plane_id === this.selected ? this.accent : category(plane.plane_id);
      const shade = colour.map((value) => value / 255);
      if (plane.outline.length < 3) continue;
      const outline = plane.outline.map((point) => this.view.local(point));
      for (const triangle of triangulated(outline, plane)) {
        this.owners.push(plane);
        for (const k of triangle) {
          corners.push(...(outline[k] as Vector3).toArray());
          colours.push(...shade);
        }
      }
      outline.forEach((point, k) => {
        ends.push(...point.toArray(), ...(outline[(k + 1) % outline.length] as Vector3).toArray());
        lineColours.push(...shade, ...shade);
      });
    }
    replace(this.faces, this.isFaded ? [] : corners, colours);
    replace(this.lines, ends, lineColours);
    this.view.redraw();
  }
}

function replace(target: Mesh | LineSegments, corners: number[], colours: number[]): void {
  target.geometry.dispose();
  target.geometry = new BufferGeometry()
    .setAttribute('position', new BufferAttribute(new Float32Array(corners), 3))
    .setAttribute('colour', new BufferAttribute(new Float32Array(colours), 3));
  target.visible = corners.length > 0;
}

/** Triangles of an outline, seen along the axis that its normal is nearest to. */
function triangulated(outline: Vector3[], plane: Plane): number[][] {
  const size = [plane.nx, plane.ny, plane.nz].map(Math.abs);
  const drop = size.indexOf(Math.max(...size));
  const [a, b] = [0, 1, 2].filter((axis) => axis !== drop) as [number, number];
  const flat = outline.map((point) => new Vector2(point.getComponent(a), point.getComponent(b)));
  return ShapeUtils.triangulateShape(flat, []);
}
