// Elements shown and hidden by their facets, and coloured by one.
import { byId, count, field, fill, h, select, swatch } from './dom';
import { type Elements, type Facet, FACETS, NONE } from './elements';

export function elementsPanel(elements: Elements): () => void {
  const host = byId('facets');
  let facet: Facet = 'class';

  const draw = (): void => {
    const offered = FACETS.filter((each) => elements.values(each).some(([value]) => value !== NONE));
    if (!offered.includes(facet)) facet = offered[0] ?? 'class';
    const hidden = elements.hidden.get(facet) as Set<string>;
    const values = elements.values(facet);
    fill(host,
      field('Colour by', select([['', 'own colour'], ...offered.map((each) => [each, each] as const)], elements.colourBy, (value) => {
        elements.colourBy = value as Facet | '';
        elements.paint();
        draw();
      })),
      field('Show by', select(offered.map((each) => [each, each] as const), facet, (value) => {
        facet = value as Facet;
        draw();
      })),
      h('ul', { class: 'values' }, ...values.map(([value, total]) => h('li', {},
        h('label', {},
          h('input', {
            type: 'checkbox', checked: !hidden.has(value), onchange: (event: Event) => {
              if ((event.target as HTMLInputElement).checked) hidden.delete(value);
              else hidden.add(value);
              elements.paint();
            },
          }),
          elements.colourBy === facet && swatch(elements.colourOf(facet, value)),
          h('span', { class: 'name' }, value), h('span', { class: 'count' }, count(total))),
        h('button', { class: 'quiet', 'aria-label': `Show only ${value}`, onclick: () => {
          hidden.clear();
          for (const [each] of values) if (each !== value) hidden.add(each);
          elements.paint();
          draw();
        } }, 'only')))),
      h('button', { onclick: () => { elements.showAll(); draw(); } }, 'Show all'),
    );
  };
  draw();
  return draw;
}
