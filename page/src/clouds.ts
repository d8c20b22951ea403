// Points: their tiles, and how each is coloured. A query or a column answers with values in the order of a tile's points.
import { BufferAttribute, Color, type BufferGeometry, type Object3D, type Points, ShaderMaterial, type IUniform } from 'three';
import { bytes, isAbort, type Cloud, type PointSelection } from './api';
import { categoryTable, legendTable, placeOf, PLACES, rampTable, texture, write } from './scales';
import { CLIPPING, type Section } from './section';
import { pointsOf, Tileset } from './tiles';
import type { View } from './view';

/** How points are coloured: by their own colours, by height, or by a column. */
export interface Colouring { by: 'colour' | 'height' | string; isCategory: boolean; ramp: string; min: number; max: number }
export interface Marking { id: string; selections: Record<string, PointSelection> }

const MODES = { plain: 0, colour: 1, height: 2, range: 3, category: 4 };
const MARKINGS = { none: 0, mask: 1, bytes: 2 };

const VERTEX = /* glsl */ `
  attribute vec4 color;
  attribute float value;
  attribute float mark;
  uniform int mode, marking;
  uniform bool hasColour, hasValue, hasMark, hideOthers, hasSelection, isFaded;
  uniform float size, low, high;
  uniform float selected;
  uniform vec3 missing, accent;
  uniform sampler2D scale, legend;
  varying vec3 shade;
  varying vec3 place;
  varying float isOut;
  vec3 encoded(vec3 linear) {
    return mix(1.055 * pow(linear, vec3(1.0 / 2.4)) - 0.055, linear * 12.92, vec3(lessThanEqual(linear, vec3(0.0031308))));
  }
  vec4 ofCategory() {
    return texture2D(scale, vec2(mod(value + 0.5, ${PLACES}.0) / ${PLACES}.0, 0.5));
  }
  bool isHidden() {
    return mode == ${MODES.category} && hasValue && !isnan(value) && ofCategory().a < 0.5;
  }
  vec3 own() {
    if (mode == ${MODES.height}) return texture2D(scale, vec2((place.z - low) / (high - low), 0.5)).rgb;
    if (mode == ${MODES.range} && hasValue) {
      return isnan(value) ? missing : texture2D(scale, vec2((value - low) / (high - low), 0.5)).rgb;
    }
    if (mode == ${MODES.category} && hasValue) {
      return isnan(value) ? missing : ofCategory().rgb;
    }
    if (mode == ${MODES.colour} && hasColour) return encoded(color.rgb);
    return missing;
  }
  void main() {
    vec4 world = modelMatrix * vec4(position, 1.0);
    place = world.xyz;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
    gl_PointSize = size;
    isOut = isHidden() ? 1.0 : 0.0;
    shade = own();
    if (marking != ${MARKINGS.none}) {
      if (!hasMark || mark < 0.5) {
        if (hideOthers) isOut = 1.0;
        shade = mix(vec3(dot(shade, vec3(0.3, 0.6, 0.1))), missing, 0.75);
        gl_PointSize = max(size * 0.6, 1.0);
      } else if (marking == ${MARKINGS.bytes}) {
        shade = texture2D(legend, vec2((mark + 0.5) / ${PLACES}.0, 0.5)).rgb;
      } else if (mode != ${MODES.range} && mode != ${MODES.category}) {
        shade = accent;
      }
    }
    if (isFaded) {
      shade = mix(vec3(dot(shade, vec3(0.3, 0.6, 0.1))), missing, 0.75);
      gl_PointSize = max(size * 0.6, 1.0);
    }
    if (hasSelection && float(gl_VertexID) == selected) {
      shade = accent;
      gl_PointSize = max(size * 3.0, 9.0);
      isOut = 0.0;
    }
  }`;

const FRAGMENT = /* glsl */ `
  varying vec3 shade;
  varying vec3 place;
  varying float isOut;
  ${CLIPPING}
  void main() {
    if (isOut > 0.5 || isClipped(place)) discard;
    vec2 from = gl_PointCoord - 0.5;
    if (dot(from, from) > 0.25) discard;
    gl_FragColor = vec4(shade, 1.0);
  }`;

/** A tile of points. */
export interface Node {
  cloud: Cloud;
  name: string;
  points: Points<BufferGeometry, ShaderMaterial>;
  isSeen: boolean;
  /** What its values and marks are of; '' for none. */
  valuesOf: string;
  marksOf: string;
  ids: Promise<BigInt64Array> | null;
}

export class Clouds {
  readonly tilesets = new Map<number, Tileset>();
  readonly nodes = new Map<Object3D, Node>();
  colouring: Colouring = { by: 'colour', isCategory: false, ramp: 'viridis', min: 0, max: 1 };
  marking: Marking | null = null;
  failed: (error: unknown) => void = () => {};
  /** Called when values have come. */
  dressed: () => void = () => {};
  /** Values of the column that points are coloured by as categories, of the tiles that came so far. */
  readonly categories = new Set<number>();
  /** Places of those of which no point is drawn. */
  readonly hiddenPlaces = new Set<number>();
  private readonly scale = texture();
  private readonly legend = texture();
  private readonly shared: Record<string, IUniform>;
  private abort = new AbortController();
  private waiting = 0;

  constructor(private readonly view: View, section: Section) {
    this.shared = {
      mode: { value: MODES.colour }, hideOthers: { value: false }, isFaded: { value: false },
      size: { value: 2.5 * view.renderer.getPixelRatio() }, low: { value: 0 }, high: { value: 1 },
      missing: { value: new Color() }, accent: { value: new Color() },
      scale: { value: this.scale }, legend: { value: this.legend }, ...section.uniforms,
    };
    view.beforeFrame.push(() => {
      let isBusy = this.waiting > 0;
      for (const each of this.tilesets.values()) isBusy = each.update() || isBusy;
      return isBusy;
    });
  }

  /** Show a cloud, or what there is of it by now: a preview comes before its tiles. */
  add(cloud: Cloud): void {
    let before = this.tilesets.get(cloud.id);
    if (!cloud.tileset || before?.url === cloud.tileset) return;
    this.tilesets.set(cloud.id, new Tileset(this.view, cloud.tileset, {
      loaded: (content, name) => {
        before?.dispose();
        before = undefined;
        for (const points of pointsOf(content)) {
          const { color } = points.geometry.attributes;
          const uniforms = {
            ...this.shared, hasColour: { value: color !== undefined }, hasValue: { value: false }, hasMark: { value: false },
            marking: { value: MARKINGS.none }, selected: { value: 0 }, hasSelection: { value: false },
          };
          const material = new ShaderMaterial({ vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms });
          points.material = material;
          const node = { cloud, name, points: points as Node['points'], isSeen: false, valuesOf: '', marksOf: '', ids: null };
          this.nodes.set(points, node);
        }
      },
      seen: (content, isSeen) => {
        for (const points of pointsOf(content)) {
          const node = this.nodes.get(points);
          if (!node) continue;
          node.isSeen = isSeen;
          if (isSeen) void this.dress(node);
        }
      },
      gone: (content) => pointsOf(content).forEach((points) => {
        (points.material as ShaderMaterial).dispose();
        this.nodes.delete(points);
      }),
    }));
  }

  /** Tiles that are drawn now. */
  *seen(): Generator<Node> {
    for (const node of this.nodes.values()) {
      if (node.isSeen && this.tilesets.get(node.cloud.id)?.group.visible) yield node;
    }
  }

  get seenPoints(): number {
    let sum = 0;
    for (const node of this.seen()) sum += node.points.geometry.attributes.position?.count ?? 0;
    return sum;
  }

  /** Diameter of a point in CSS pixels. */
  get size(): number { return this.shared.size?.value / this.view.renderer.getPixelRatio(); }
  set size(pixels: number) { this.uniform('size', pixels * this.view.renderer.getPixelRatio()); }
  set hideOthers(isHidden: boolean) { this.uniform('hideOthers', isHidden); }

  /** Behind elements that a list shows. */
  set isFaded(isFaded: boolean) { this.uniform('isFaded', isFaded); }

  /** Colours of the theme: of points without a value, and of those selected. */
  theme(missing: Color, accent: Color): void {
    this.uniform('missing', missing);
    this.uniform('accent', accent);
  }

  colour(colouring: Colouring): void {
    const { by, isCategory, ramp, min, max } = colouring;
    if (by !== this.colouring.by || !isCategory) this.hiddenPlaces.clear();
    this.colouring = colouring;
    this.categories.clear();
    for (const node of this.nodes.values()) if (node.valuesOf === by) this.note(node);
    const isColumn = by !== 'colour' && by !== 'height';
    write(this.scale, isColumn && isCategory ? categoryTable(by === 'classification', this.hiddenPlaces) : rampTable(ramp));
    const up = by === 'height' ? this.view.origin.z : 0;
    this.uniform('low', min - up);
    this.uniform('high', Math.max(max, min + 1e-9) - up);
    this.uniform('mode', by === 'colour' ? MODES.colour : by === 'height' ? MODES.height
      : isCategory ? MODES.category : MODES.range);
    this.dressAll();
  }

  mark(marking: Marking | null): void {
    this.marking = marking;
    const [first] = Object.values(marking?.selections ?? {});
    write(this.legend, legendTable(first?.legend));
    this.dressAll();
  }

  /** Ids of a tile's points, in their order. */
  ids(node: Node): Promise<BigInt64Array> {
    node.ids ??= bytes(`clouds/${node.cloud.id}/ids/${node.name}`).then((buffer) => new BigInt64Array(buffer));
    node.ids.catch(() => { node.ids = null; });
    return node.ids;
  }

  select(chosen: { node: Node; index: number } | null): void {
    for (const node of this.nodes.values()) {
      const { selected, hasSelection } = node.points.material.uniforms;
      if (hasSelection) hasSelection.value = node === chosen?.node;
      if (selected) selected.value = node === chosen?.node ? chosen.index : 0;
    }
    this.view.redraw();
  }

  /** Whether a point is not drawn, since its category is hidden or a query did not choose it. */
  isHidden(node: Node, index: number): boolean {
    const { hideOthers } = this.shared;
    const value = this.hiddenPlaces.size > 0 ? node.points.geometry.attributes.value?.getX(index) : undefined;
    if (value !== undefined && this.hiddenPlaces.has(placeOf(value))) return true;
    return this.marking !== null && hideOthers?.value === true
      && !(node.marksOf === this.marking.id && (node.points.geometry.attributes.mark?.getX(index) ?? 0) > 0);
  }

  private uniform(name: string, value: unknown): void {
    (this.shared[name] as IUniform).value = value;
    this.view.redraw();
  }

  private dressAll(): void {
    this.abort.abort();
    this.abort = new AbortController();
    for (const node of this.nodes.values()) if (node.isSeen) void this.dress(node);
    this.view.redraw();
  }

  /** Give a tile the values and marks of now, unless it has them. */
  private async dress(node: Node): Promise<void> {
    const { signal } = this.abort;
    const { geometry, material } = node.points;
    const uniforms = material.uniforms as Record<'hasValue' | 'hasMark' | 'marking', IUniform>;
    const { by } = this.colouring;
    const selection = this.marking?.selections[node.cloud.id];
    uniforms.marking.value = !this.marking ? MARKINGS.none : selection?.kind === 'bytes' ? MARKINGS.bytes : MARKINGS.mask;
    const valuesOf = by === 'colour' || by === 'height' ? '' : by;
    const marksOf = this.marking && selection ? this.marking.id : '';
    uniforms.hasValue.value = valuesOf !== '' && node.valuesOf === valuesOf;
    uniforms.hasMark.value = marksOf !== '' && node.marksOf === marksOf;
    this.waiting++;
    try {
      await Promise.all([
        valuesOf && node.valuesOf !== valuesOf && this.values(node, valuesOf, signal).then((values) => {
          geometry.setAttribute('value', new BufferAttribute(values, 1));
          node.valuesOf = valuesOf;
          uniforms.hasValue.value = true;
          this.note(node);
          this.dressed();
        }),
        marksOf && selection && node.marksOf !== marksOf && this.marks(node, selection, signal).then((marks) => {
          geometry.setAttribute('mark', new BufferAttribute(marks, 1));
          node.marksOf = marksOf;
          uniforms.hasMark.value = true;
        }),
      ]);
    } catch (error) {
      if (!isAbort(error)) this.failed(error);
    } finally {
      this.waiting--;
      this.view.redraw();
    }
  }

  private note(node: Node): void {
    if (this.colouring.isCategory) for (const value of node.points.geometry.attributes.value?.array ?? []) this.categories.add(value);
  }

  /** Values of a column: those that the tile has, else the server's. */
  private async values(node: Node, column: string, signal: AbortSignal): Promise<Float32Array> {
    const carried = node.points.geometry.attributes[`_${column.toLowerCase()}`];
    if (carried) return Float32Array.from({ length: carried.count }, (_, k) => carried.getX(k));
    const place = node.cloud.columns.findIndex(({ name }) => name === column);
    return new Float32Array(await bytes(`column/${node.cloud.id}/${place}/${node.name}`, signal));
  }

  private async marks(node: Node, selection: PointSelection, signal: AbortSignal): Promise<Uint8Array> {
    const id = (this.marking as Marking).id;
    const said = new Uint8Array(await bytes(`query/${id}/clouds/${node.cloud.id}/${node.name}`, signal));
    if (selection.kind === 'bytes') return said;
    const total = node.points.geometry.attributes.position?.count ?? 0;
    return Uint8Array.from({ length: total }, (_, k) => ((said[k >> 3] as number) >> (k & 7)) & 1);
  }
}
