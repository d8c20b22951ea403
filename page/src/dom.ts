// Elements of the page, made without HTML text.

type Child = Node | string | number | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: never) => void) | null | undefined>;

/** Make an element. `onclick` and the like listen; a boolean is a property; all else is an attribute. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
    else if (typeof value === 'boolean') (element as unknown as Record<string, boolean>)[name] = value;
    else element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) {
      parent.append(child instanceof Node ? child : String(child));
    }
  }
}

export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

/** A field with its label before it. */
export function field(label: string, control: HTMLElement): HTMLLabelElement {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

export function select(
  options: readonly (readonly [value: string, label: string])[], value: string, changed: (value: string) => void,
): HTMLSelectElement {
  const made = h('select', { onchange: () => changed(made.value) },
    ...options.map(([each, label]) => h('option', { value: each, selected: each === value }, label)));
  return made;
}

/** A colour beside a label; the style is set by script, which the policy of the page allows. */
export function swatch(colour: readonly number[]): HTMLElement {
  const made = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  made.style.background = `rgb(${colour.join(' ')})`;
  return made;
}

const whole = new Intl.NumberFormat('en', { useGrouping: true, maximumFractionDigits: 0 });
export function count(value: number): string {
  return whole.format(value).replaceAll(',', '\u2009');
}

/** A number as short as it is still told apart. */
export function short(value: number, digits = 3): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(digits)));
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Have the browser save a file. */
export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  h('a', { href: address, download: name }).click();
  URL.revokeObjectURL(address);
}
