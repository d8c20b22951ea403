// The row of what was picked, with its relations.
import { type Details, json, type Json, type Relation, type Row } from './api';
import { byId, fill, h } from './dom';
import { display } from './query';

const MOST_OPEN = 8; // rows of another table that are shown at once

export interface Action { label: string; run: () => void }

export class DetailsPanel {
  private readonly host = byId('details');
  private asked = 0;

  constructor(
    private readonly follow: (column: string, value: Json) => (() => void) | null,
    /** What can be done with rows of another table. */
    private readonly related: (relation: Relation) => Action | null,
    private readonly closed: () => void,
  ) {}

  /** Show what the server says under an address, or what is known without one. */
  async show(title: string, source: Promise<string | Row> | string | Row, actions: Action[]): Promise<void> {
    const mine = ++this.asked;
    const body = h('div', { class: 'body' }, h('p', { class: 'empty' }, 'Loading …'));
    fill(this.host,
      h('header', {}, h('h2', {}, title), h('button', { class: 'icon', 'aria-label': 'Close details', onclick: () => this.closed() }, '×')),
      h('div', { class: 'actions' }, ...actions.map(({ label, run }) => h('button', { onclick: run }, label))), body);
    this.host.hidden = false;
    try {
      const said = await source;
      const { row, relations } = typeof said === 'string' ? await json<Details>(said) : { row: said, relations: [] };
      if (mine !== this.asked) return;
      fill(body, this.table(row), ...relations.filter((each) => each.rows.length).flatMap((each) => this.relation(each)));
    } catch (error) {
      if (mine === this.asked) fill(body, h('p', { class: 'error', role: 'alert' }, (error as Error).message));
    }
  }

  private relation(relation: Relation): (HTMLElement | null)[] {
    const { name, rows, is_cut: isCut } = relation;
    const action = this.related(relation);
    return [
      h('details', { open: rows.length <= MOST_OPEN },
        h('summary', {}, h('span', { class: 'name' }, name), h('span', { class: 'count' }, isCut ? `${rows.length} or more` : rows.length)),
        this.rows(rows)),
      action && h('div', { class: 'actions' }, h('button', { onclick: action.run }, action.label)),
    ];
  }

  hide(): void {
    this.asked++;
    this.host.hidden = true;
  }

  private table(row: Row): HTMLElement {
    return h('table', {}, h('tbody', {}, ...Object.entries(row).filter(([, value]) => value !== null)
      .map(([name, value]) => h('tr', {}, h('th', { scope: 'row' }, name), h('td', {}, this.value(name, value))))));
  }

  private rows(rows: Row[]): HTMLElement {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return h('div', { class: 'wide' }, h('table', {},
      h('thead', {}, h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)))),
      h('tbody', {}, ...rows.map((row) => h('tr', {}, ...names.map((name) => h('td', {}, this.value(name, row[name] ?? null))))))));
  }

  private value(column: string, value: Json): HTMLElement | string {
    const go = value === null ? null : this.follow(column, value);
    return go ? h('button', { class: 'link', onclick: go }, display(value)) : display(value);
  }
}
