// Saved views: kept by the server, taken out and in as BCF.
import { json, post, type SavedView } from './api';
import { byId, fill, h } from './dom';

export interface ViewSource {
  /** The file that the server keeps them in. */
  file: string | null;
  now(title: string): SavedView;
  restore(view: SavedView): void;
  say(text: string, isError?: boolean): void;
}

export function viewsPanel(source: ViewSource): void {
  const host = byId('views');
  const title = h('input', { type: 'text', placeholder: 'Title', 'aria-label': 'Title of the view', maxlength: 200 });
  const list = h('div', { class: 'rows' });
  const file = h('input', { type: 'file', accept: '.bcf,.bcfzip', hidden: true, 'aria-label': 'BCF file' });

  const refresh = async (): Promise<void> => {
    try {
      const said = await json<SavedView[] | { views: SavedView[] }>('views');
      const views = Array.isArray(said) ? said : said.views;
      fill(list, ...views.map((view) => h('button', { class: 'row', onclick: () => source.restore(view) }, view.title)),
        views.length === 0 && h('p', { class: 'empty' }, 'No view is saved yet.'));
    } catch (error) {
      source.say((error as Error).message, true);
    }
  };

  file.addEventListener('change', () => {
    const [chosen] = file.files ?? [];
    if (!chosen) return;
    post('views.bcf', chosen).then(refresh, (error: Error) => source.say(error.message, true));
    file.value = '';
  });
  fill(host,
    h('form', { class: 'line', onsubmit: (event: Event) => {
      event.preventDefault();
      post('views', source.now(title.value.trim() || new Date().toLocaleString())).then(() => {
        title.value = '';
        return refresh();
      }, (error: Error) => source.say(error.message, true));
    } }, title, h('button', { class: 'main', type: 'submit' }, 'Save view')),
    list,
    h('p', { class: 'empty' }, source.file ? `Kept in ${source.file}.`
      : 'They end with the server, unless saved as BCF; spatialq view --views FILE.bcf keeps them.'),
    h('div', { class: 'actions' },
      h('a', { class: 'button', href: 'views.bcf', download: 'views.bcf' }, 'Save as BCF'),
      h('button', { onclick: () => file.click() }, 'Open BCF'), file));
  void refresh();
}
