// Keys of the page, and the list of them in the help.
import { append, byId, h } from './dom';

export interface Key { keys: string; label: string; run?: () => void }

export function keys(all: Key[]): void {
  const help = byId<HTMLDialogElement>('help');
  append(byId('help-keys'), all.flatMap(({ keys: names, label }) => [h('dt', {}, ...names.split(' ').map((name) => h('kbd', {}, name))), h('dd', {}, label)]));
  byId('help-open').addEventListener('click', () => help.showModal());
  help.addEventListener('click', (event) => { if (event.target === help) help.close(); });
  document.addEventListener('keydown', (event) => {
    const inText = (event.target as HTMLElement).matches('input:not([type=checkbox], [type=range]), textarea, select');
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || (inText && event.key !== 'Escape')) return;
    const found = all.find((each) => each.run && each.keys.toLowerCase() === event.key.toLowerCase());
    if (!found?.run) return;
    event.preventDefault();
    found.run();
  });
}
