// What the server says, and how it is asked: docs/serve.md of the project describes each address.
import { h } from './dom';

export type Vec = [number, number, number];
export type Box = [number, number, number, number, number, number];
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type Row = Record<string, Json>;

/** `low` and `high` are where a scale begins and ends: without the two percent at either end, which may be noise. */
export interface Column {
  name: string; type: string; min?: number | null; max?: number | null; low?: number | null; high?: number | null; values?: string[];
}
export interface Cloud {
  id: number; name: string; points: number; tileset: string | null; state: 'ready' | 'building' | 'failed';
  progress: number; message: string | null; box: Box | null; table: string; columns: Column[];
}
export interface Model { id: number; name: string; tileset: string; box: Box | null; table: string }
export interface Element {
  global_id: string; model: number; ifc_class: string | null; name: string | null; storey: string | null;
  system: string | null; box: Box | null;
}
export interface Plane { plane_id: number; nx: number; ny: number; nz: number; d: number; points: number; outline: Vec[] }
export interface ListRow extends Row {
  elements: string[]; centre: Vec | null; box: Box | null; group: string | null; status: string | null;
}
export interface List { name: string; columns: (string | Column)[]; rows: ListRow[] }
export interface Table { name: string; columns: { name: string; type: string }[] }
/** The unit of lengths, null for degrees, and what differences of x and y, and of z, are multiplied by to be in it. */
export interface Units { name: string | null; scale: [across: number, up: number] }
export interface SceneFile {
  title: string; origin: Vec; crs: string | null; units: Units; clouds: Cloud[]; models: Model[]; elements: string | null;
  planes: { table: string; rows: string } | null; lists: List[]; tables: Table[];
  is_shared?: boolean; views: string | null; limits: { seconds: number; memory: string; rows: number } | null;
}

export interface Category { value: Json; colour: Vec; label: string }
export type Legend = Category[] | { min: number | null; max: number | null; ramp: string };
export interface PointSelection { kind: 'mask' | 'bytes'; count: number; legend?: Legend; column?: string }
export interface ElementSelection { global_ids: string[]; values: Json[] | null; legend?: Legend | null }
export interface Selection {
  points: Record<string, PointSelection> | null; elements: ElementSelection | null; planes: number[] | null;
}
export interface Result {
  id: string; columns: { name: string; type: string }[]; rows: Json[][]; count: number | null; truncated: boolean;
  seconds: number; select: Selection | null;
}
export interface Camera { eye: Vec; target: Vec; up: Vec; fov: number }
export interface SavedView { title: string; camera: Camera; components: string[]; query: string | null }
/** Rows of another table: its name, the table as queries name it, and whether there may be more rows. */
export interface Relation { name: string; table: string; is_cut: boolean; rows: Row[] }
export interface Details { row: Row; relations: Relation[] }
export interface Question { text: string; language: 'sql' | 'ql4bim'; colour: string | null }

/** What is selected: by its ids, by the text of a query of the box, or as the result that Python gave. */
export interface Chosen {
  kind: 'point' | 'element' | 'plane'; ids: (string | number)[]; cloud?: number; text?: string; result?: string;
}

/** Whether this page is one that `--export` wrote: a folder of files, without a server that answers. */
export const isExported = document.querySelector('meta[name=spatialq-export]') !== null;

const handed = new Map<unknown, string>();
Object.assign(window, { spatialqFile: (text: string) => handed.set(document.currentScript, text) });

/**
 * A file of an exported page. A browser does not fetch anything for a page that was opened by a double click, but runs
 * scripts beside it: each file is one, which hands over its bytes as base64 of gzip.
 */
function file(path: string): Promise<Response> {
  return new Promise((done, failed) => {
    const script = h('script', { src: `${path}.js` });
    script.addEventListener('error', () => { script.remove(); failed(new Error(`${path}.js cannot be read.`)); });
    script.addEventListener('load', () => {
      const packed = Uint8Array.from(atob(handed.get(script) ?? ''), (each) => each.charCodeAt(0));
      handed.delete(script);
      script.remove();
      done(new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))));
    });
    document.head.append(script);
  });
}

export async function asked(path: string, options?: RequestInit): Promise<Response> {
  if (isExported) {
    const found = await file(path);
    options?.signal?.throwIfAborted();
    return found;
  }
  let response: Response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error;
    throw new Error('spatialq does not answer; start it again and load this page anew.');
  }
  if (response.ok) return response;
  const said = await response.json().catch(() => null) as { error?: string } | null;
  throw new Error(said?.error ?? `${path} answered ${response.status}.`);
}

export async function json<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await asked(path, { signal })).json() as Promise<T>;
}

export async function bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await asked(path, { signal })).arrayBuffer();
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const isFile = body instanceof Blob;
  const response = await asked(path, {
    method: 'POST', signal, body: isFile ? body : JSON.stringify(body),
    headers: { 'Content-Type': isFile ? 'application/octet-stream' : 'application/json' },
  });
  return response.json() as Promise<T>;
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}
