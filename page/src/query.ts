// The query box: text with history and completion, its result as a table, and what it selects in the scene.
import { isAbort, post, type Json, type Result, type SceneFile } from './api';
import { candidates } from './completion';
import { append, byId, count, fill, h, plural, save, short } from './dom';

const HISTORY = 'spatialq.history';
const MOST_KEPT = 100;

export interface QueryBox {
  text: string;
  language: 'sql' | 'ql4bim';
  run(): Promise<void>;
  /** Show a result that something else asked for. */
  take(result: Result | null): void;
  /** The query of the result that is shown, if it is one of SQL. */
  readonly answeredText: string | null;
  clear(): void;
  focus(): void;
}

export interface Answered {
  /** A result, or null when there is none any more. */
  result(result: Result | null): void;
  /** A row was clicked. */
  row(columns: string[], row: Json[]): void;
  /** Whether points that are not in the result are drawn. */
  hideOthers(isHidden: boolean): void;
}

export function queryBox(scene: SceneFile, answered: Answered): QueryBox {
  const area = byId<HTMLTextAreaElement>('query-text');
  const language = byId<HTMLSelectElement>('query-language');
  const status = byId('query-status');
  const table = byId('query-result');
  const colour = byId<HTMLSelectElement>('query-colour');
  const others = byId<HTMLInputElement>('query-others');
  const run = byId<HTMLButtonElement>('query-run');
  const clear = byId<HTMLButtonElement>('query-clear');
  const keep = byId<HTMLButtonElement>('query-save');
  let shown: Result | null = null;
  let running: AbortController | null = null;
  let answeredText: string | null = null;

  const ask = async (): Promise<void> => {
    const text = area.value.trim();
    if (!text) return;
    running?.abort();
    const mine = running = new AbortController();
    say(status, 'Running …');
    run.textContent = 'Stop';
    try {
      const question = { text, language: language.value, parameters: null, colour: colour.value || null };
      const result = await post<Result>('query', question, mine.signal);
      remember(text);
      answeredText = question.language === 'sql' ? text : null;
      show(result);
      answered.result(result);
    } catch (error) {
      if (!isAbort(error)) say(status, (error as Error).message, true);
      else if (running === mine) say(status, 'Stopped.');
    } finally {
      if (running === mine) {
        running = null;
        run.textContent = 'Run';
      }
    }
  };

  const forget = (): void => {
    fill(table);
    say(status, '');
    colour.value = '';
    clear.disabled = keep.disabled = true;
    shown = null;
    answered.result(null);
  };

  const show = (result: Result): void => {
    const names = result.columns.map((column) => column.name);
    const total = result.count ?? result.rows.length;
    say(status, `${result.truncated ? `First ${count(result.rows.length)} of ${result.count === null ? 'more' : count(total)} rows`
      : plural(total, 'row')} in ${result.seconds < 1 ? `${Math.ceil(1000 * result.seconds)} ms` : `${short(result.seconds, 1)} s`}${selected(result)}`);
    clear.disabled = keep.disabled = false;
    shown = result;
    const kept = colour.value;
    const colourable = result.columns.filter((column) => !/(^|_)(point|global|plane)_id$/.test(column.name));
    fill(colour, h('option', { value: '' }, 'auto'), ...colourable.map(({ name }) => h('option', { value: name }, name)));
    colour.value = names.includes(kept) ? kept : '';
    fill(table, resultTable(names, result.rows, (row) => answered.row(names, row)));
  };

  others.addEventListener('change', () => answered.hideOthers(others.checked));
  colour.addEventListener('change', () => void ask());
  run.addEventListener('click', () => (running ? running.abort() : void ask()));
  clear.addEventListener('click', forget);
  keep.addEventListener('click', () => { if (shown) save('rows.csv', new Blob([csv(shown)], { type: 'text/csv' })); });
  completion(area, scene, () => language.value === 'sql');
  history(area);
  area.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void ask();
    }
  });
  byId('query-others-part').hidden = scene.clouds.length === 0;
  if (scene.clouds.length === 0) area.placeholder = "SELECT global_id FROM elements WHERE ifc_class = 'IfcWall'";
  const { limits } = scene;
  if (limits) byId('query-limits').textContent = `read-only · ${limits.seconds} s · ${limits.memory}`;
  return {
    get text() { return area.value; },
    set text(text) { area.value = text; },
    get language() { return language.value as 'sql' | 'ql4bim'; },
    set language(value) { language.value = value; },
    take: (result) => {
      if (!result) return forget();
      answeredText = null;
      show(result);
      answered.result(result);
    },
    get answeredText() { return answeredText; },
    run: ask, clear: forget, focus: () => area.focus(),
  };
}

/** The rows of an answer in CSV, numbers with all their digits. */
function csv({ columns, rows }: Result): string {
  const cell = (value: Json): string => {
    const text = value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
    return /[",\r\n]/.test(text) || (text === '' && value !== null) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns.map(({ name }) => name), ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}

function selected({ select }: Result): string {
  if (!select) return '';
  const points = Object.values(select.points ?? {}).reduce((sum, each) => sum + each.count, 0);
  const said = [
    points > 0 && plural(points, 'point'), select.elements && plural(new Set(select.elements.global_ids).size, 'element'),
    select.planes && plural(select.planes.length, 'plane'),
  ].filter(Boolean);
  return said.length ? ` · ${said.join(', ')} in the scene` : '';
}

function say(status: HTMLElement, text: string, isError = false): void {
  status.textContent = text;
  status.classList.toggle('error', isError);
}

function resultTable(names: string[], rows: Json[][], clicked: (row: Json[]) => void): HTMLTableElement {
  const body = h('tbody', {});
  for (const row of rows) {
    const line = h('tr', { tabindex: 0, onclick: () => clicked(row), onkeydown: (event: KeyboardEvent) => {
      if (event.key === 'Enter') clicked(row);
    } });
    append(line, row.map((value) => h('td', { class: typeof value === 'number' ? 'number' : null }, display(value))));
    body.append(line);
  }
  return h('table', {}, h('thead', {}, h('tr', {}, ...names.map((name) => h('th', { scope: 'col' }, name)))), body);
}

export function display(value: Json): string {
  if (value === null) return 'NULL';
  if (typeof value === 'number') return short(value, 4);
  if (typeof value !== 'object') return String(value);
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 117)}…` : text;
}

// Memory of what was asked, in the browser; a browser that forbids storage forgets.
function remembered(): string[] {
  try {
    return JSON.parse(localStorage.getItem(HISTORY) ?? '[]') as string[];
  } catch {
    return [];
  }
}

function remember(text: string): void {
  try {
    const kept = [text, ...remembered().filter((each) => each !== text)].slice(0, MOST_KEPT);
    localStorage.setItem(HISTORY, JSON.stringify(kept));
  } catch { /* no storage */ }
}

/** Alt with the arrows up and down goes through what was asked. */
function history(area: HTMLTextAreaElement): void {
  let place = -1;
  let draft = '';
  area.addEventListener('input', () => { place = -1; });
  area.addEventListener('keydown', (event) => {
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return;
    event.preventDefault();
    const kept = remembered();
    if (place === -1) draft = area.value;
    place = Math.min(Math.max(place + (event.key === 'ArrowUp' ? 1 : -1), -1), kept.length - 1);
    area.value = place === -1 ? draft : kept[place] ?? '';
  });
}

function completion(area: HTMLTextAreaElement, scene: SceneFile, isOn: () => boolean): void {
  const list = byId('query-completion');
  let offered: { start: number; words: string[] } = { start: 0, words: [] };
  let chosen = 0;
  const close = () => {
    offered = { start: 0, words: [] };
    list.hidden = true;
    area.setAttribute('aria-expanded', 'false');
    area.removeAttribute('aria-activedescendant');
  };
  const draw = () => {
    list.hidden = offered.words.length === 0;
    area.setAttribute('aria-expanded', String(!list.hidden));
    if (list.hidden) return close();
    fill(list, ...offered.words.map((word, k) => h('li', {
      role: 'option', id: `completion-${k}`, 'aria-selected': String(k === chosen),
      onmousedown: (event: Event) => { event.preventDefault(); take(k); },
    }, word)));
    area.setAttribute('aria-activedescendant', `completion-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: 'nearest' });
  };
  const take = (k: number) => {
    const word = offered.words[k];
    if (word) area.setRangeText(word, offered.start, area.selectionEnd, 'end');
    close();
  };
  const offer = (isAsked: boolean) => {
    const { start, words } = candidates(area.value, area.selectionEnd, scene.tables);
    chosen = 0;
    offered = isOn() && (isAsked || area.selectionEnd - start >= 2) ? { start, words } : { start, words: [] };
    draw();
  };
  area.addEventListener('input', () => offer(false));
  area.addEventListener('blur', close);
  area.addEventListener('keydown', (event) => {
    if (event.key === ' ' && event.ctrlKey) {
      event.preventDefault();
      return offer(true);
    }
    if (list.hidden || event.altKey || event.ctrlKey) return;
    const { length } = offered.words;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') chosen = (chosen + (event.key === 'ArrowDown' ? 1 : length - 1)) % length;
    else if (event.key === 'Tab') take(chosen);
    else if (event.key === 'Escape') { event.stopPropagation(); close(); }
    else return;
    event.preventDefault();
    if (!list.hidden) draw();
  });
}
