// The state of the page in its address, after the '#': camera, colouring, query and what is selected.
import type { Camera, Vec } from './api';

export interface Linked {
  camera: Camera | null; colour: string | null; query: string | null; language: 'sql' | 'ql4bim'; selected: string | null;
}

export function read(fragment = location.hash): Linked {
  const values = new URLSearchParams(fragment.replace(/^#/, ''));
  const numbers = (values.get('v') ?? '').split(',').map(Number);
  const isCamera = numbers.length === 7 && numbers.every(Number.isFinite);
  return {
    camera: isCamera ? {
      eye: numbers.slice(0, 3) as Vec, target: numbers.slice(3, 6) as Vec, up: [0, 0, 1], fov: numbers[6] as number,
    } : null,
    colour: values.get('c'),
    query: values.get('q'),
    language: values.get('l') === 'ql4bim' ? 'ql4bim' : 'sql',
    selected: values.get('s'),
  };
}

export function write({ camera, colour, query, language, selected }: Linked): void {
  const values = new URLSearchParams();
  if (camera) values.set('v', [...camera.eye, ...camera.target].map((each) => each.toFixed(3)).concat(String(camera.fov)).join(','));
  if (colour) values.set('c', colour);
  if (query) values.set('q', query);
  if (language === 'ql4bim') values.set('l', language);
  if (selected) values.set('s', selected);
  history.replaceState(null, '', `#${values.toString().replaceAll('%2C', ',')}`);
}
