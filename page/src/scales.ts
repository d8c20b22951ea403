// Colour scales: ramps for numbers, palettes for categories. Colours are sRGB, 0 to 255.
import { DataTexture, NearestFilter, RGBAFormat } from 'three';
import type { Legend, Vec } from './api';

/** Stops at equal distances: viridis and turbo by their authors' tables, the others of our own. */
const STOPS: Record<string, Vec[]> = {
  viridis: [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]],
  turbo: [[48, 18, 59], [70, 107, 227], [40, 187, 236], [49, 242, 153], [162, 252, 60], [237, 208, 58], [251, 128, 34], [210, 49, 5], [122, 4, 3]],
  grey: [[24, 24, 24], [245, 245, 245]],
  'blue to red': [[33, 102, 172], [103, 169, 207], [209, 229, 240], [247, 247, 247], [253, 219, 199], [239, 138, 98], [178, 24, 43]],
};
export const RAMPS = Object.keys(STOPS);

/** Twenty colours that are told apart, light beside dark. */
const PALETTE: Vec[] = [
  [78, 121, 167], [242, 142, 43], [89, 161, 79], [225, 87, 89], [176, 122, 161], [118, 183, 178], [237, 201, 72],
  [255, 157, 167], [156, 117, 95], [134, 188, 182], [160, 203, 232], [255, 190, 125], [140, 209, 125], [211, 114, 149],
  [182, 153, 45], [73, 152, 148], [241, 206, 99], [134, 134, 214], [212, 166, 200], [215, 181, 166],
];

/** ASPRS classes of LAS 1.4. */
export const CLASSES: Record<number, readonly [string, Vec]> = {
  0: ['never classified', [150, 150, 150]], 1: ['unclassified', [180, 180, 180]], 2: ['ground', [171, 129, 82]],
  3: ['low vegetation', [163, 205, 104]], 4: ['medium vegetation', [99, 173, 76]], 5: ['high vegetation', [42, 126, 62]],
  6: ['building', [222, 108, 84]], 7: ['low noise', [233, 63, 173]], 8: ['model key point', [240, 215, 90]],
  9: ['water', [72, 133, 214]], 10: ['rail', [120, 104, 150]], 11: ['road surface', [110, 116, 126]],
  12: ['overlap', [200, 190, 160]],
  13: ['wire guard', [240, 178, 62]], 14: ['wire conductor', [250, 204, 70]], 15: ['transmission tower', [160, 120, 200]],
  16: ['wire connector', [226, 150, 60]], 17: ['bridge deck', [94, 180, 196]], 18: ['high noise', [214, 40, 120]],
  19: ['overhead structure', [214, 150, 96]], 20: ['ignored ground', [196, 164, 128]], 21: ['snow', [226, 236, 244]],
  22: ['temporal exclusion', [128, 128, 160]],
};

export function category(index: number): Vec {
  return PALETTE[((index % PALETTE.length) + PALETTE.length) % PALETTE.length] as Vec;
}

/** The colour at a place of a ramp, 0 to 1. */
export function onRamp(name: string, at: number): Vec {
  const stops = STOPS[name] ?? (STOPS.viridis as Vec[]);
  const place = Math.min(Math.max(at, 0), 1) * (stops.length - 1);
  const k = Math.min(Math.floor(place), stops.length - 2);
  const [a, b] = [stops[k] as Vec, stops[k + 1] as Vec];
  return a.map((value, axis) => Math.round(value + ((b[axis] as number) - value) * (place - k))) as Vec;
}

/** Places in the texture of colours: as many as a byte has values, and whole palettes, so that values of one place have one colour. */
export const PLACES = Math.ceil(256 / PALETTE.length) * PALETTE.length;

/** The place of a category, as the shader finds it. */
export function placeOf(value: number): number {
  return ((value % PLACES) + PLACES) % PLACES;
}

/** The colours of a texture in which a shader looks up; those of places that are hidden are clear. */
export function table(colour: (index: number) => Vec, hidden: ReadonlySet<number> = new Set()): Uint8Array {
  const made = new Uint8Array(4 * PLACES);
  for (let k = 0; k < PLACES; k++) made.set([...colour(k), hidden.has(k) ? 0 : 255], 4 * k);
  return made;
}

export function rampTable(name: string): Uint8Array {
  return table((k) => onRamp(name, k / (PLACES - 1)));
}

export function categoryTable(isClass: boolean, hidden: ReadonlySet<number>): Uint8Array {
  return table((k) => (isClass ? CLASSES[k]?.[1] : undefined) ?? category(k), hidden);
}

/** Of a query's bytes: 0 is a point that is not in the result, others follow the legend. */
export function legendTable(legend: Legend | null | undefined): Uint8Array {
  if (Array.isArray(legend)) return table((k) => legend[k - 1]?.colour ?? category(k - 1));
  return table((k) => onRamp(legend?.ramp ?? 'viridis', (k - 1) / 254));
}

export function texture(): DataTexture {
  const made = new DataTexture(new Uint8Array(4 * PLACES), PLACES, 1, RGBAFormat);
  made.minFilter = made.magFilter = NearestFilter;
  return made;
}

export function write(target: DataTexture, colours: Uint8Array): void {
  (target.image.data as Uint8Array).set(colours);
  target.needsUpdate = true;
}
