// The section box by two sliders for each axis, and planes beside it.
import { Box3, type Plane, Vector3 } from 'three';
import { byId, fill, h, short } from './dom';
import type { Section } from './section';
import type { View } from './view';

const STEPS = 200;
const AXES = ['x', 'y', 'z'] as const;
const SIDES = ['min', 'max'] as const;
type Side = typeof SIDES[number];

export function sectionPanel(view: View, section: Section, around: () => Box3 | null): () => void {
  /** Write what is so now into the controls, which stay, so that the one in use keeps the focus. */
  const updates: (() => void)[] = [];
  const now = (): Box3 => section.box ?? view.extent;

  /** Two sliders; neither goes beyond the other. */
  const sliders = (axis: number): HTMLElement[] => {
    const low = (): number => view.extent.min.getComponent(axis);
    const width = (): number => Math.max(view.extent.max.getComponent(axis) - low(), 1e-6);
    const made = SIDES.map((side): HTMLInputElement => h('input', {
      type: 'range', min: 0, max: STEPS, 'aria-label': `${side === 'min' ? 'Lowest' : 'Highest'} ${AXES[axis]}`, oninput: () => {
        const [lowest, highest] = made.map((each) => Number(each.value)) as [number, number];
        const next = now().clone();
        const step = side === 'min' ? Math.min(lowest, highest - 1) : Math.max(highest, lowest + 1);
        next[side].setComponent(axis, low() + step / STEPS * width());
        section.set(next);
      },
    }));
    updates.push(() => made.forEach((each, k) => {
      each.value = String(Math.round((now()[SIDES[k] as Side].getComponent(axis) - low()) / width() * STEPS));
    }));
    return made;
  };

  /** Where the box ends, in coordinates of the scene; what is typed in the wrong order is put into the right one. */
  const edges = (axis: number): HTMLElement[] => SIDES.map((side) => {
    const made = h('input', {
      type: 'number', step: 'any', 'aria-label': `${side === 'min' ? 'From' : 'To'} ${AXES[axis]}`, onchange: () => {
        const next = now().clone();
        if (made.value !== '') next[side].setComponent(axis, Number(made.value) - view.origin.getComponent(axis));
        section.set(new Box3().setFromPoints([next.min, next.max]));
      },
    });
    updates.push(() => { made.value = short(view.world(now()[side])[axis] as number, 2); });
    return made;
  });

  const planes = h('div');
  let described = '';
  updates.push(() => {
    const all = section.planes.map(describe);
    if (all.join() === described) return;
    described = all.join();
    fill(planes, ...all.map((text, k) => h('div', { class: 'line' }, h('span', {}, text),
      h('button', { class: 'quiet', onclick: () => {
        section.set(section.box, section.planes.map((each, i) => (i === k ? each.clone().negate() : each)));
      } }, 'flip'),
      h('button', { class: 'quiet', onclick: () => section.set(section.box, section.planes.filter((_, i) => i !== k)) }, 'remove'))));
  });

  const aroundSelection = h('button', { onclick: () => section.set(around()) }, 'Around selection');
  const remove = h('button', { onclick: () => section.set(null, []) }, 'Remove section');
  updates.push(() => {
    aroundSelection.hidden = around() === null;
    remove.disabled = !section.box && section.planes.length === 0;
  });

  fill(byId('section'),
    ...AXES.map((name, axis) => h('div', { class: 'range' }, h('span', {}, name), ...sliders(axis), ...edges(axis))),
    planes, h('div', { class: 'actions' }, aroundSelection, remove));
  const draw = (): void => { for (const update of updates) update(); };
  section.addEventListener('changed', draw);
  return draw;
}

function describe({ normal }: Plane): string {
  const up = new Vector3(0, 0, 1);
  return Math.abs(normal.dot(up)) > 0.98 ? 'level plane' : Math.abs(normal.dot(up)) < 0.02 ? 'upright plane' : 'sloped plane';
}
