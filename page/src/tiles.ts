// Tilesets in the scene: which tiles are there, which are seen, and how fine they are.
import { Group, type BufferGeometry, type Mesh, type Object3D, type Points } from 'three';
import { MeshoptDecoder } from 'three/examples/jsm/libs/meshopt_decoder.module.js';
import { TilesRenderer } from '3d-tiles-renderer/three';
import { GLTFExtensionsPlugin } from '3d-tiles-renderer/three/plugins';
import { ImplicitTilingPlugin } from '3d-tiles-renderer/core/plugins';
import { asked } from './api';
import type { View } from './view';

export interface Receiver {
  /** A tile was loaded; `name` is that of its file without its ending. */
  loaded(content: Object3D, name: string): void;
  seen(content: Object3D, isSeen: boolean): void;
  gone(content: Object3D): void;
}

interface Stats { queued: number; downloading: number; parsing: number }

const FINEST = 16; // pixels of error: the writer's voxels are then a pixel wide
const COARSEST = 4096;

export class Tileset {
  readonly group = new Group();
  failure: string | null = null;
  private readonly tiles: TilesRenderer;
  private isChanged = true;
  private pending = 0;

  constructor(private readonly view: View, readonly url: string, receiver: Receiver) {
    const tiles = this.tiles = new TilesRenderer(url);
    tiles.registerPlugin({ fetchData: asked });
    tiles.registerPlugin(new GLTFExtensionsPlugin({ metadata: true, meshoptDecoder: MeshoptDecoder }));
    tiles.registerPlugin(new ImplicitTilingPlugin());
    tiles.setCamera(view.camera);
    tiles.errorTarget = FINEST;
    tiles.addEventListener('load-model', ({ scene, url: from }: { scene: Object3D; url: string }) => {
      receiver.loaded(scene, decodeURIComponent(from.split(/[?#]/)[0] ?? '').replace(/^.*\//, '').replace(/\.\w+$/, ''));
      this.changed();
    });
    tiles.addEventListener('tile-visibility-change', ({ scene, visible }: { scene: Object3D | null; visible: boolean }) => {
      if (scene) receiver.seen(scene, visible);
      this.changed();
    });
    tiles.addEventListener('dispose-model', ({ scene }: { scene: Object3D }) => receiver.gone(scene));
    tiles.addEventListener('needs-update', () => this.changed());
    tiles.addEventListener('load-error', ({ error }: { error: Error }) => {
      this.failure = error.message;
      this.changed();
    });
    this.group.add(tiles.group);
    this.group.position.copy(view.origin).negate();
    this.group.updateMatrixWorld(true);
    view.scene.add(this.group);
    view.controls.addEventListener('change', () => { this.isChanged = true; });
  }

  set errorTarget(pixels: number) {
    if (pixels === this.tiles.errorTarget) return;
    this.tiles.errorTarget = pixels;
    this.changed();
  }

  /** Ask for what the camera sees. Returns true while something is on its way. */
  update(): boolean {
    if (!this.group.visible) return false;
    if (this.isChanged || this.pending > 0) {
      this.isChanged = false;
      this.tiles.setResolutionFromRenderer(this.view.camera, this.view.renderer);
      this.tiles.update();
    }
    const { queued, downloading, parsing } = (this.tiles as unknown as { stats: Stats }).stats;
    this.pending = this.failure ? 0 : queued + downloading + parsing + (this.tiles.root ? 0 : 1);
    return this.pending > 0;
  }

  /** Draw again and ask again, as after a change of the camera. */
  changed(): void { this.isChanged = true; this.view.redraw(); }

  dispose(): void {
    this.view.scene.remove(this.group);
    this.tiles.dispose();
  }
}

/** Lets tiles be as fine as a budget of points allows. */
export class Budget {
  points = matchMedia('(pointer: coarse)').matches ? 1e6 : 3e6;
  private errorTarget = FINEST;
  private wait = 0;

  apply(tilesets: Iterable<Tileset>, seen: number): void {
    if (--this.wait > 0) return;
    const wanted = seen > this.points ? this.errorTarget * 1.25
      : seen < this.points / 2 ? this.errorTarget / 1.25 : this.errorTarget;
    const next = Math.min(Math.max(wanted, FINEST), COARSEST);
    if (next === this.errorTarget) return;
    this.errorTarget = next;
    this.wait = 10; // frames for the tiles to follow
    for (const each of tilesets) each.errorTarget = next;
  }
}

export function pointsOf(content: Object3D): Points<BufferGeometry>[] {
  const found: Points<BufferGeometry>[] = [];
  content.traverse((each) => { if ((each as Points).isPoints) found.push(each as Points<BufferGeometry>); });
  return found;
}

export function meshesOf(content: Object3D): Mesh<BufferGeometry>[] {
  const found: Mesh<BufferGeometry>[] = [];
  content.traverse((each) => { if ((each as Mesh).isMesh) found.push(each as Mesh<BufferGeometry>); });
  return found;
}
