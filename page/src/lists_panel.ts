// Lists such as clashes and verdicts, in groups: a click flies to a row and shows its elements in two colours.
import type { Json, List, ListRow, Vec } from './api';
import { byId, count, field, fill, h, plural, select, swatch } from './dom';
import { display } from './query';

export const FIRST: Vec = [226, 74, 51], SECOND: Vec = [52, 138, 189];
const NOT_SHOWN = new Set(['elements', 'centre', 'box', 'group', 'status', 'x', 'y', 'z']);
const MOST_VALUES = 5; // of a row
const MOST = 2000; // rows in the page at once

export interface Lists {
  /** Draw the rows again, when the names of elements are known. */
  draw(): void;
  step(by: number): void;
  clear(): void;
  /**
   * The row that is shown, as a link has it: the list, which of its rows with these elements, and the elements; empty
   * for none. Rows in another order, or some more of them, leave it the same.
   */
  current(): string[];
  /** Show the row of a link. */
  open(link: string[]): void;
}

export function listsPanel(
  lists: List[], nameOf: (globalId: string) => string, chosen: (row: ListRow | null, withBox: boolean) => void,
): Lists {
  const host = byId('lists');
  let list = lists[0];
  let current: ListRow | null = null;
  let shown: ListRow[] = [];
  let wanted = '';
  let withBox = true;
  const rows = h('div', { class: 'rows' });

  const choose = (row: ListRow | null): void => {
    current = row;
    for (const button of rows.querySelectorAll<HTMLElement>('button.row')) {
      const isCurrent = row !== null && shown[Number(button.dataset.row)] === row;
      button.setAttribute('aria-current', String(isCurrent));
      if (isCurrent) button.scrollIntoView({ block: 'nearest' });
    }
    chosen(row, withBox);
  };

  const title = (row: ListRow): string => row.elements.map(nameOf).join(' × ');
  const text = (row: ListRow): string => {
    const said = new Set<Json>([null, row.group, ...row.elements, ...row.elements.map(nameOf)]);
    return columns(list as List).map((name) => [name, row[name] ?? null] as const).filter(([, value]) => !said.has(value))
      .slice(0, MOST_VALUES).map(([name, value]) => (typeof value === 'number' ? `${name} ${display(value)}` : display(value))).join(' · ');
  };

  const drawRows = (): void => {
    if (!list) return;
    const groups = new Map<string, ListRow[]>();
    for (const row of list.rows) {
      if (!`${title(row)} ${text(row)} ${row.status ?? ''} ${row.group ?? ''}`.toLowerCase().includes(wanted)) continue;
      const group = row.group ?? '';
      groups.set(group, [...(groups.get(group) ?? []), row]);
    }
    shown = [...groups.values()].flat().slice(0, MOST);
    let k = 0;
    fill(rows, ...[...groups].map(([group, members]) => h('details', { open: true },
      h('summary', {}, h('span', { class: 'name' }, group || 'no group'), h('span', { class: 'count' }, count(members.length))),
      ...members.slice(0, Math.max(MOST - k, 0)).map((row) => h('button', {
        class: 'row', 'data-row': k++, 'aria-current': String(row === current), onclick: () => choose(row),
      }, row.status && h('span', { class: 'status', 'data-status': row.status.toLowerCase() }, row.status),
        h('span', {}, title(row)), h('span', { class: 'more' }, text(row)))))),
      shown.length === 0 && h('p', { class: 'empty' }, 'No row has this text.'));
  };

  const draw = (): void => {
    if (!list) {
      fill(host, h('p', { class: 'empty' }, 'No clashes or verdicts were opened with this scene.'));
      return;
    }
    fill(host,
      lists.length > 1 ? field('List', select(lists.map((each, k) => [String(k), each.name] as const), String(lists.indexOf(list)),
        (value) => { list = lists[Number(value)]; choose(null); draw(); })) : h('h2', {}, list.name),
      h('input', {
        type: 'search', placeholder: `Filter ${plural(list.rows.length, 'row')}`, 'aria-label': 'Filter rows', value: wanted,
        oninput: (event: Event) => { wanted = (event.target as HTMLInputElement).value.toLowerCase(); drawRows(); },
      }),
      h('div', { class: 'line' },
        h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: withBox, onchange: (event: Event) => {
          withBox = (event.target as HTMLInputElement).checked;
          if (current) choose(current);
        } }), 'Section box'),
        h('span', { class: 'key' }, swatch(FIRST), 'first ', swatch(SECOND), 'second')),
      rows);
    drawRows();
  };
  draw();

  return {
    draw: drawRows,
    step: (by) => {
      if (shown.length) choose(shown[(Math.max(current ? shown.indexOf(current) : by > 0 ? -1 : 0, -1) + by + shown.length) % shown.length] ?? null);
    },
    clear: () => { if (current) choose(null); },
    current: () => (list && current ? [list.name, String(alike(list, current.elements).indexOf(current)), ...current.elements] : []),
    open: ([name, place, ...elements]) => {
      const of = lists.find((each) => each.name === name);
      const found = of && alike(of, elements)[Number(place)];
      if (!found) return;
      list = of;
      draw();
      choose(found);
    },
  };
}

/** Rows with the same elements. */
function alike(list: List, elements: string[]): ListRow[] {
  return list.rows.filter((row) => row.elements.join() === elements.join());
}

function columns(list: List): string[] {
  return list.columns.map((each) => (typeof each === 'string' ? each : each.name)).filter((name) => !NOT_SHOWN.has(name));
}
