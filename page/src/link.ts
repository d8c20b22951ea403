// The state of the page in its address, after the '#': camera, colouring, query and what is selected.
import type { Box, Camera, Vec } from './api';
import type { SectionState } from './section';

export interface Linked {
  camera: Camera | null; colour: string | null; query: string | null; language: 'sql' | 'ql4bim'; selected: string | null;
  /** The row of a list, as `Lists.current` says it; empty for none. */
  row: string[];
  section: SectionState;
}

export function read(fragment = location.hash): Linked {
  const values = new URLSearchParams(fragment.replace(/^#/, ''));
  /** So many numbers; null where they are not. */
  const numbers = (text: string | null, length: number): number[] | null => {
    const parts = text?.split(',') ?? [];
    const found = parts.map(Number);
    return found.length === length && found.every((each, k) => parts[k] !== '' && Number.isFinite(each)) ? found : null;
  };
  const camera = numbers(values.get('v'), 7);
  return {
    camera: camera && {
      eye: camera.slice(0, 3) as Vec, target: camera.slice(3, 6) as Vec, up: [0, 0, 1], fov: camera[6] as number,
    },
    colour: values.get('c'),
    query: values.get('q'),
    language: values.get('l') === 'ql4bim' ? 'ql4bim' : 'sql',
    selected: values.get('s'),
    row: values.getAll('r'),
    section: {
      box: numbers(values.get('b'), 6) as Box | null,
      planes: values.getAll('p').map((text) => numbers(text, 4))
        .filter((each) => each?.slice(0, 3).some((value) => value !== 0)) as SectionState['planes'],
    },
  };
}

export function write({ camera, colour, query, language, selected, row, section }: Linked): void {
  const values = new URLSearchParams();
  if (camera) values.set('v', [...camera.eye, ...camera.target].map((each) => each.toFixed(3)).concat(String(camera.fov)).join(','));
  if (colour) values.set('c', colour);
  if (query) values.set('q', query);
  if (language === 'ql4bim') values.set('l', language);
  if (selected) values.set('s', selected);
  for (const each of row) values.append('r', each);
  if (section.box) values.set('b', section.box.map((each) => each.toFixed(3)).join(','));
  // unrounded: the distance is that from zero, so that a rounded normal would move the plane by metres
  for (const plane of section.planes) values.append('p', plane.join(','));
  history.replaceState(null, '', `#${values.toString().replaceAll('%2C', ',')}`);
}
