// How points are coloured: the column, its range and ramp, and the legend in the picture.
import type { Cloud, Column, Selection } from './api';
import type { Clouds, Colouring } from './clouds';
import { byId, field, fill, h, select, short, swatch } from './dom';
import { CLASSES, category, onRamp, placeOf, PLACES, RAMPS } from './scales';

const MOST_CATEGORIES = 32;

export class ColourPanel {
  private selection: Selection | null = null;
  private readonly host = byId('colours');
  private columns: Column[] = [];
  /** What own colours are; null where points have none. */
  private own: string | null = null;
  private isThere = false;
  /** What was offered last, and of it the colouring. */
  private offered = '';
  private scale = '';
  /** What a person, or a link, said that points are coloured by. */
  chosen: string | null = null;

  constructor(private readonly clouds: Clouds, private readonly changed: () => void) {}

  /** From which z to which there are points: models may be lower or higher. */
  private heights: [number, number] = [0, 1];

  /** Columns that the clouds have and that differ from point to point; those of several are offered once. */
  offer(all: Cloud[]): void {
    this.isThere = all.length > 0;
    const everyColumn = all.flatMap((cloud) => cloud.columns);
    this.own = everyColumn.some(({ name }) => name === 'red') ? 'own colour'
      : everyColumn.some(({ name, min, max }) => name === 'intensity' && min !== max) ? 'intensity, grey' : null;
    this.columns = [...new Set(everyColumn.map(({ name }) => name))]
      .map((name) => together(everyColumn.filter((column) => column.name === name)))
      .filter(({ name, type, values, min, max }) => (type === 'text' ? (values?.length ?? 0) > 1 : min !== max)
        && !['x', 'y', 'z', 'point_id', 'red', 'green', 'blue'].includes(name));
    const boxes = all.map((cloud) => cloud.box).filter((box) => box !== null);
    const heights = all.map((cloud) => cloud.columns.find(({ name }) => name === 'z'));
    if (boxes.length) {
      this.heights = [
        Math.min(...boxes.map((box, k) => heights[k]?.low ?? box[2])), Math.max(...boxes.map((box, k) => heights[k]?.high ?? box[5])),
      ];
    }
    // columns are known when the tiles are there, and asked for again until then: what a person typed meanwhile stays
    const wanted = this.chosen ?? (this.own ? 'colour' : 'height');
    const offered = JSON.stringify([this.isThere, this.own, this.columns, this.scaleOf(wanted)]);
    if (offered === this.offered) return;
    this.offered = offered;
    if (JSON.stringify(this.scaleOf(wanted)) !== this.scale) this.apply(wanted);
    this.draw();
  }

  by(name: string): void {
    this.chosen = name;
    this.apply(name);
    this.changed();
  }

  private apply(name: string): void {
    const scale = this.scaleOf(name);
    if (!scale) return;
    this.scale = JSON.stringify(scale);
    this.clouds.colour({ ...this.clouds.colouring, ...scale });
    this.draw();
  }

  /** How points are coloured by what is known of a column; null for one that no cloud has. */
  private scaleOf(name: string): Pick<Colouring, 'by' | 'isCategory' | 'min' | 'max'> | null {
    const column = this.columns.find((each) => each.name === name);
    if (name !== 'colour' && name !== 'height' && !column) return null;
    const [min, max] = [column?.min ?? 0, column?.max ?? 1];
    const [low, high] = name === 'height' ? this.heights : [column?.low ?? min, column?.high ?? max];
    const isCategory = column !== undefined && (column.type === 'boolean' || column.type === 'text' || name === 'classification'
      || (column.type === 'integer' && (name.endsWith('_id') || max - min < MOST_CATEGORIES)));
    return { by: name, isCategory, min: low, max: high };
  }

  legendOf(selection: Selection | null = this.selection): void {
    this.selection = selection;
    this.legend();
  }

  private draw(): void {
    const now = this.clouds.colouring;
    const options: [string, string][] = [...(this.own ? [['colour', this.own] as [string, string]] : []), ['height', 'height'],
      ...this.columns.map(({ name }): [string, string] => [name, name])];
    const column = this.columns.find((each) => each.name === now.by);
    const hasRange = now.by !== 'colour' && !now.isCategory;
    const number = (label: string, value: number, set: (value: number) => void) => field(label, h('input', {
      type: 'number', step: 'any', value: short(value), onchange: (event: Event) => {
        const given = Number((event.target as HTMLInputElement).value);
        if (Number.isFinite(given)) this.recolour(() => set(given));
      },
    }));
    fill(this.host,
      field('Colour by', select(options, now.by, (name) => this.by(name))),
      column?.type === 'integer' && field('As', select([['', 'range'], ['yes', 'categories']], now.isCategory ? 'yes' : '',
        (value) => this.recolour(() => { now.isCategory = value !== ''; }))),
      hasRange && h('div', { class: 'pair' },
        number('From', now.min, (value) => { now.min = value; }), number('to', now.max, (value) => { now.max = value; })),
      hasRange && field('Scale', select(RAMPS.map((ramp) => [ramp, ramp] as const), now.ramp,
        (ramp) => this.recolour(() => { now.ramp = ramp; }))),
    );
    this.legend();
  }

  private recolour(change: () => void): void {
    change();
    this.clouds.colour(this.clouds.colouring);
    this.draw();
  }

  /** What the colours of the picture mean: those of a query, else those of the column. */
  private legend(): void {
    const host = byId('legend');
    const [points] = Object.values(this.selection?.points ?? {}).filter((each) => each.kind === 'bytes');
    const legend = points?.legend ?? this.selection?.elements?.legend;
    if (legend) {
      fill(host, h('b', {}, points?.column ?? 'query'), ...(Array.isArray(legend)
        ? legend.map((each) => h('div', {}, swatch(each.colour), each.label)) : ramp(legend.ramp, legend.min, legend.max)));
    } else if (!this.isThere) {
      fill(host);
    } else {
      const { by, isCategory, min, max, ramp: name } = this.clouds.colouring;
      fill(host, by !== 'colour' && h('b', {}, by), ...(by === 'colour' ? [] : isCategory ? this.categories(by) : ramp(name, min, max)));
    }
    host.hidden = host.childElementCount === 0;
  }

  private categories(by: string): HTMLElement[] {
    const column = this.columns.find((each) => each.name === by);
    const label = (value: number): string => column?.values?.[value] ?? (column?.type === 'boolean' ? String(value === 1)
      : by === 'classification' ? `${value} ${CLASSES[value]?.[0] ?? ''}` : String(value));
    const values = [...this.clouds.categories].filter(Number.isFinite).sort((a, b) => a - b);
    const more = values.length - MOST_CATEGORIES;
    const { hiddenPlaces } = this.clouds;
    // where two values may have one place, hiding one would hide the other
    const disabled = (column?.max ?? 0) - (column?.min ?? 0) >= PLACES;
    return [...values.slice(0, MOST_CATEGORIES).map((value) => h('label', {},
      h('input', {
        type: 'checkbox', checked: !hiddenPlaces.has(placeOf(value)), disabled, onchange: () => {
          const place = placeOf(value);
          if (!hiddenPlaces.delete(place)) hiddenPlaces.add(place);
          this.clouds.colour(this.clouds.colouring);
        },
      }),
      swatch((by === 'classification' ? CLASSES[value]?.[1] : undefined) ?? category(value)), label(value))),
    ...(more > 0 ? [h('div', {}, `and ${more} more`)] : [])];
  }
}

/** A column that several clouds have, with the range of all. */
function together(columns: Column[]): Column {
  const known = (end: (each: Column) => number | null | undefined): number[] => columns.map(end).filter((each) => typeof each === 'number');
  const least = (all: number[]) => (all.length ? Math.min(...all) : null);
  const greatest = (all: number[]) => (all.length ? Math.max(...all) : null);
  return {
    ...columns.at(-1) as Column, min: least(known(({ min }) => min)), max: greatest(known(({ max }) => max)),
    low: least(known(({ low, min }) => low ?? min)), high: greatest(known(({ high, max }) => high ?? max)),
  };
}

function ramp(name: string, min: number | null, max: number | null): HTMLElement[] {
  if (min === null || max === null) return [h('div', {}, 'no values')];
  const bar = h('div', { class: 'ramp', role: 'img', 'aria-label': `scale ${name}` });
  const stops = Array.from({ length: 17 }, (_, k) => `rgb(${onRamp(name, k / 16).join(' ')})`);
  bar.style.background = `linear-gradient(to right, ${stops.join(', ')})`;
  return [bar, h('div', { class: 'ends' }, h('span', {}, short(min)), h('span', {}, short(max)))];
}
