// Elements of models: drawn in one call for each tile; a texture says of each element whether and how it is drawn.
import {
  Box3, type BufferGeometry, Color, DataTexture, DoubleSide, Mesh, NearestFilter, type Object3D, RGBAFormat, ShaderMaterial,
  type IUniform,
} from 'three';
import { json, type Element, type ElementSelection, type Model, type Vec } from './api';
import { category, onRamp } from './scales';
import { CLIPPING, type Section } from './section';
import { meshesOf, Tileset } from './tiles';
import type { View } from './view';

const WIDTH = 256; // of the texture
const HIDDEN = 0, FADED = 64, OWN = 128, PAINTED = 255; // its alpha

const VERTEX = /* glsl */ `
  attribute vec4 color;
  attribute float _feature_id_0;
  uniform sampler2D states;
  uniform bool isGhost, hasColour;
  varying vec4 shade;
  varying vec3 place, seen;
  void main() {
    int id = int(_feature_id_0 + 0.5);
    vec4 state = texelFetch(states, ivec2(id % ${WIDTH}, id / ${WIDTH}), 0);
    int kind = int(state.a * 255.0 + 0.5);
    place = (modelMatrix * vec4(position, 1.0)).xyz;
    vec4 at = modelViewMatrix * vec4(position, 1.0);
    seen = at.xyz;
    vec4 own = hasColour ? color : vec4(0.6, 0.6, 0.6, 1.0);
    own.rgb = mix(1.055 * pow(own.rgb, vec3(1.0 / 2.4)) - 0.055, own.rgb * 12.92, vec3(lessThanEqual(own.rgb, vec3(0.0031308))));
    shade = kind == ${PAINTED} ? vec4(state.rgb, 1.0) : own;
    bool isDrawn = isGhost ? kind == ${FADED} : kind > ${FADED};
    gl_Position = isDrawn ? projectionMatrix * at : vec4(2.0, 2.0, 2.0, 1.0);
  }`;

const FRAGMENT = /* glsl */ `
  varying vec4 shade;
  varying vec3 place, seen;
  uniform bool isGhost;
  uniform vec3 ghost;
  ${CLIPPING}
  void main() {
    if (isClipped(place)) discard;
    vec3 normal = normalize(cross(dFdx(seen), dFdy(seen)));
    vec3 up = normalize((viewMatrix * vec4(0.25, 0.4, 0.88, 0.0)).xyz);
    float light = 0.62 + 0.22 * abs(normal.z) + 0.16 * dot(normal, up);
    gl_FragColor = isGhost ? vec4(ghost * light, 0.1) : vec4(shade.rgb * light, shade.a);
  }`;

interface Part { ids: string[]; states: DataTexture; meshes: Mesh<BufferGeometry, ShaderMaterial>[] }

/** What facets elements are filtered and coloured by. */
export const FACETS = ['class', 'storey', 'system', 'status', 'model'] as const;
export type Facet = (typeof FACETS)[number];
export const NONE = 'none';

export class Elements extends EventTarget {
  readonly tilesets = new Map<number, Tileset>();
  rows = new Map<string, Element>();
  /** Values that are hidden, by facet. */
  readonly hidden = new Map<Facet, Set<string>>(FACETS.map((facet) => [facet, new Set()]));
  readonly hiddenIds = new Set<string>();
  isolated: Set<string> | null = null;
  /** Elements in the colours of a list; all others are faded. */
  highlighted: Map<string, Vec> | null = null;
  selection: ElementSelection | null = null;
  selected: string | null = null;
  colourBy: Facet | '' = '';
  statuses = new Map<string, string>();
  private models: Model[] = [];
  private readonly parts = new Map<Object3D, Part>();
  private readonly ghost = { value: new Color() };
  private accent: Vec = [0, 0, 0];

  constructor(private readonly view: View, private readonly section: Section) {
    super();
    view.beforeFrame.push(() => {
      let isBusy = false;
      for (const each of this.tilesets.values()) isBusy = each.update() || isBusy;
      return isBusy;
    });
  }

  /** Whether a tile of a model was loaded. */
  get areThere(): boolean { return this.parts.size > 0; }

  async load(path: string | null, models: Model[]): Promise<void> {
    this.models = models;
    for (const model of models) this.add(model);
    if (!path) return;
    const said = await json<Element[] | { rows: Element[] }>(path);
    this.rows = new Map((Array.isArray(said) ? said : said.rows).map((row) => [row.global_id, row]));
    this.paint();
  }

  theme(ghost: Color, accent: Vec): void {
    this.ghost.value = ghost;
    this.accent = accent;
    this.paint();
  }

  facet(row: Element, facet: Facet): string {
    switch (facet) {
      case 'class': return row.ifc_class ?? NONE;
      case 'storey': return row.storey ?? NONE;
      case 'system': return row.system ?? NONE;
      case 'status': return this.statuses.get(row.global_id) ?? NONE;
      case 'model': return this.models.find((model) => model.id === row.model)?.name ?? NONE;
    }
  }

  /** Values of a facet with how many elements have them, in order. */
  values(facet: Facet): [value: string, count: number][] {
    const counts = new Map<string, number>();
    for (const row of this.rows.values()) {
      const value = this.facet(row, facet);
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    return [...counts].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
  }

  colourOf(facet: Facet, value: string): Vec {
    return value === NONE ? [150, 150, 150] : category(this.values(facet).findIndex(([each]) => each === value));
  }

  isVisible(id: string): boolean {
    if (this.hiddenIds.has(id)) return false;
    if (this.highlighted?.has(id)) return true; // what a list is about, whatever classes are hidden
    if (this.isolated && !this.isolated.has(id)) return false;
    const row = this.rows.get(id);
    return !row || FACETS.every((facet) => {
      const values = this.hidden.get(facet) as Set<string>;
      return values.size === 0 || !values.has(this.facet(row, facet));
    });
  }

  boxOf(ids: Iterable<string>): Box3 {
    const found = new Box3();
    for (const id of ids) {
      const box = this.rows.get(id)?.box;
      if (box) found.union(this.view.localBox(box));
    }
    return found;
  }

  showAll(): void {
    this.hiddenIds.clear();
    this.isolated = null;
    for (const each of this.hidden.values()) each.clear();
    this.paint();
  }

  /** The element of a triangle, if it is drawn opaque. */
  at(mesh: Object3D, vertex: number): string | null {
    for (const part of this.parts.values()) {
      const found = part.meshes.find((each) => each === mesh);
      const id = found && part.ids[found.geometry.attributes._feature_id_0?.getX(vertex) ?? -1];
      if (id) return this.isVisible(id) && !this.isFaded(id) ? id : null;
    }
    return null;
  }

  /** What can be picked: of models that are shown. */
  *meshes(): Generator<Mesh> {
    for (const [content, part] of this.parts) {
      let isShown = content.parent !== null;
      content.traverseAncestors((each) => { isShown &&= each.visible; });
      if (isShown) yield* part.meshes.filter((mesh) => !mesh.material.uniforms.isGhost?.value);
    }
  }

  /** Write how each element is drawn. */
  paint(): void {
    const colours = this.queryColours();
    const byFacet = new Map(this.colourBy ? this.values(this.colourBy).map(([value]) =>
      [value, this.colourOf(this.colourBy as Facet, value)]) : []);
    for (const part of this.parts.values()) {
      const data = part.states.image.data as Uint8Array;
      let hasGhosts = false;
      part.ids.forEach((id, k) => {
        const row = this.rows.get(id);
        const painted = id === this.selected ? this.accent : this.highlighted?.get(id) ?? colours?.get(id)
          ?? (this.colourBy && row ? byFacet.get(this.facet(row, this.colourBy)) : undefined);
        const isFaded = this.isFaded(id);
        const state = !this.isVisible(id) ? HIDDEN : isFaded ? FADED : painted ? PAINTED : OWN;
        hasGhosts ||= state === FADED;
        data.set([...(painted ?? [0, 0, 0]), state], 4 * k);
      });
      part.states.needsUpdate = true;
      for (const mesh of part.meshes) if (mesh.material.uniforms.isGhost?.value) mesh.visible = hasGhosts;
    }
    this.view.redraw();
    this.dispatchEvent(new Event('painted'));
  }

  private isFaded(id: string): boolean {
    if (id === this.selected) return false;
    if (this.highlighted) return !this.highlighted.has(id);
    return this.selection !== null && !this.chosen.has(id);
  }

  private chosen = new Set<string>();

  select(selection: ElementSelection | null): void {
    this.selection = selection;
    this.chosen = new Set(selection?.global_ids);
    this.paint();
  }

  private queryColours(): Map<string, Vec> | null {
    const selection = this.selection;
    if (!selection) return null;
    const { global_ids: ids, values, legend } = selection;
    return new Map(ids.map((id, k) => {
      const value = values?.[k];
      if (!value) return [id, values ? [150, 150, 150] : this.accent];
      // as of points: a byte from 1 on
      if (Array.isArray(legend)) return [id, legend[Number(value) - 1]?.colour ?? [150, 150, 150]];
      return [id, onRamp(legend?.ramp ?? 'viridis', (Number(value) - 1) / 254)];
    }));
  }

  private add(model: Model): void {
    this.tilesets.set(model.id, new Tileset(this.view, model.tileset, {
      loaded: (content) => this.loaded(content),
      seen: () => {},
      gone: (content) => {
        this.parts.get(content)?.states.dispose();
        this.parts.delete(content);
      },
    }));
  }

  private loaded(content: Object3D): void {
    const meshes = meshesOf(content) as Part['meshes'];
    const most = Math.max(-1, ...meshes.map((mesh) => largest(mesh.geometry)));
    const ids = idsOf(content, most + 1);
    const height = Math.max(Math.ceil(ids.length / WIDTH), 1);
    const states = new DataTexture(new Uint8Array(4 * WIDTH * height), WIDTH, height, RGBAFormat);
    states.minFilter = states.magFilter = NearestFilter;
    const part: Part = { ids, states, meshes: [] };
    for (const mesh of meshes) {
      const isClear = mesh.material.transparent;
      const uniforms = (isGhost: boolean): Record<string, IUniform> => ({
        states: { value: states }, isGhost: { value: isGhost }, ghost: this.ghost,
        hasColour: { value: mesh.geometry.attributes.color !== undefined }, ...this.section.uniforms,
      });
      const shaders = { vertexShader: VERTEX, fragmentShader: FRAGMENT, side: DoubleSide };
      mesh.material = new ShaderMaterial({ ...shaders, uniforms: uniforms(false), transparent: isClear, depthWrite: !isClear });
      const faded = new Mesh(mesh.geometry, new ShaderMaterial({
        ...shaders, uniforms: uniforms(true), transparent: true, depthWrite: false,
      }));
      mesh.renderOrder = isClear ? 1 : 0;
      faded.renderOrder = 2;
      mesh.add(faded);
      part.meshes.push(mesh, faded);
    }
    this.parts.set(content, part);
    this.paint();
  }
}

function largest(geometry: BufferGeometry): number {
  const feature = geometry.attributes._feature_id_0;
  let most = -1;
  for (let k = 0; k < (feature?.count ?? 0); k++) most = Math.max(most, feature?.getX(k) ?? -1);
  return most;
}

interface Metadata { getPropertyTableData(tables: number[], ids: number[]): { global_id?: string }[] }

/** GlobalIds of a tile's elements, from the property table that its file carries. */
function idsOf(content: Object3D, total: number): string[] {
  let metadata: Metadata | undefined;
  content.traverse((each) => { metadata ??= each.userData.structuralMetadata as Metadata | undefined; });
  return Array.from({ length: total }, (_, k) => metadata?.getPropertyTableData([0], [k])[0]?.global_id ?? '');
}
