// The section box by two sliders for each axis, and planes beside it.
import { Box3, type Plane, Vector3 } from 'three';
import { byId, fill, h, short } from './dom';
import type { Section } from './section';
import type { View } from './view';

const STEPS = 200;
const AXES = ['x', 'y', 'z'] as const;

export function sectionPanel(view: View, section: Section, around: () => Box3 | null): () => void {
  const host = byId('section');
  let isMine = false;

  const slider = (axis: number, side: 'min' | 'max'): HTMLElement => {
    const whole = view.extent;
    const low = whole.min.getComponent(axis), width = Math.max(whole.max.getComponent(axis) - low, 1e-6);
    const box = section.box ?? whole;
    return h('input', {
      type: 'range', min: 0, max: STEPS, value: Math.round((box[side].getComponent(axis) - low) / width * STEPS),
      'aria-label': `${side === 'min' ? 'Lowest' : 'Highest'} ${AXES[axis]}`, oninput: (event: Event) => {
        const next = (section.box ?? view.extent).clone();
        next[side].setComponent(axis, low + Number((event.target as HTMLInputElement).value) / STEPS * width);
        isMine = true;
        section.set(next);
        isMine = false;
      },
    });
  };

  /** Where the box ends, in coordinates of the scene. */
  const edge = (axis: number, side: 'min' | 'max'): HTMLElement => {
    const made = h('input', {
      type: 'number', step: 'any', 'aria-label': `${side === 'min' ? 'From' : 'To'} ${AXES[axis]}`, onchange: () => {
        const next = (section.box ?? view.extent).clone();
        if (made.value !== '') next[side].setComponent(axis, Number(made.value) - view.origin.getComponent(axis));
        section.set(next);
      },
    });
    edges.push(() => { made.value = short(view.world((section.box ?? view.extent)[side])[axis] as number, 2); });
    return made;
  };
  let edges: (() => void)[] = [];

  const remove = h('button', { onclick: () => section.set(null, []) }, 'Remove section');
  const draw = (): void => {
    remove.disabled = !section.box && section.planes.length === 0;
    if (isMine) {
      for (const write of edges) write();
      return;
    }
    edges = [];
    const box = around();
    fill(host,
      ...AXES.map((name, axis) => h('div', { class: 'range' }, h('span', {}, name), slider(axis, 'min'), slider(axis, 'max'),
        edge(axis, 'min'), edge(axis, 'max'))),
      ...section.planes.map((plane, k) => h('div', { class: 'line' }, h('span', {}, describe(plane)),
        h('button', { class: 'quiet', onclick: () => {
          section.set(section.box, section.planes.map((each, i) => (i === k ? each.clone().negate() : each)));
        } }, 'flip'),
        h('button', { class: 'quiet', onclick: () => section.set(section.box, section.planes.filter((_, i) => i !== k)) }, 'remove'))),
      h('div', { class: 'actions' },
        box && h('button', { onclick: () => section.set(box) }, 'Around selection'),
        remove));
    for (const write of edges) write();
  };
  section.addEventListener('changed', draw);
  return draw;
}

function describe({ normal }: Plane): string {
  const up = new Vector3(0, 0, 1);
  return Math.abs(normal.dot(up)) > 0.98 ? 'level plane' : Math.abs(normal.dot(up)) < 0.02 ? 'upright plane' : 'sloped plane';
}
