// The state of the page in its address, after the '#': camera, colouring, query and what is selected.
import type { Box, Camera, Vec } from './api';
import type { SectionState } from './section';

export interface Linked {
  camera: Camera | null; colour: string | null; query: string | null; language: 'sql' | 'ql4bim'; selected: string | null;
  /** The row of a list. */
  row: string | null;
  section: SectionState;
}

export function read(fragment = location.hash): Linked {
  const values = new URLSearchParams(fragment.replace(/^#/, ''));
  const read = (text: string): number[] => text.split(',').map(Number).filter(Number.isFinite);
  const numbers = read(values.get('v') ?? '');
  const isCamera = numbers.length === 7;
  const box = read(values.get('b') ?? '');
  return {
    camera: isCamera ? {
      eye: numbers.slice(0, 3) as Vec, target: numbers.slice(3, 6) as Vec, up: [0, 0, 1], fov: numbers[6] as number,
    } : null,
    colour: values.get('c'),
    query: values.get('q'),
    language: values.get('l') === 'ql4bim' ? 'ql4bim' : 'sql',
    selected: values.get('s'),
    row: values.get('r'),
    section: {
      box: box.length === 6 ? box as Box : null,
      planes: values.getAll('p').map(read).filter((each) => each.length === 4) as SectionState['planes'],
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
  if (row) values.set('r', row);
  if (section.box) values.set('b', section.box.map((each) => each.toFixed(3)).join(','));
  for (const plane of section.planes) values.append('p', plane.map((each) => each.toFixed(6)).join(','));
  history.replaceState(null, '', `#${values.toString().replaceAll('%2C', ',')}`);
}
