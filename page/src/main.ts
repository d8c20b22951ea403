// The page: puts its parts together.
import { Box3, Plane, Vector2, Vector3 } from 'three';
import { type Chosen, type Cloud, isExported, json, type Json, type ListRow, type Relation, type Result, type Row, type SceneFile, type Vec } from './api';
import { Clouds } from './clouds';
import { ColourPanel } from './colour_panel';
import { DetailsPanel, type Action } from './details';
import { append, byId, count, fill, h, plural, save } from './dom';
import { Elements } from './elements';
import { elementsPanel } from './elements_panel';
import { keys } from './keys';
import * as link from './link';
import { FIRST, listsPanel, SECOND } from './lists_panel';
import { Measure } from './measure';
import { Picker, type Hit } from './picking';
import { Planes } from './planes';
import { queryBox } from './query';
import { Section } from './section';
import { sectionPanel } from './section_panel';
import { sharing } from './sharing';
import { theme } from './theme';
import { Budget } from './tiles';
import { View } from './view';
import { viewsPanel } from './views_panel';

const POLL = 1000; // ms
const AROUND_POINT = 2; // of the unit of x and y, seen around a point that is flown to
const CLICK = 5; // CSS pixels that a click may move

async function start(): Promise<void> {
  const linked = link.read();
  const scene = await json<SceneFile>('scene.json');
  document.title = `${scene.title} · spatialq`;
  byId('title').textContent = scene.title;
  byId('state').textContent = scene.crs ?? '';

  const canvas = byId<HTMLCanvasElement>('canvas');
  const view = new View(canvas, scene.origin);
  const section = new Section(view);
  const clouds = new Clouds(view, section);
  const elements = new Elements(view, section);
  const planes = new Planes(view, section);
  const picker = new Picker(view, section, clouds, elements, planes);
  const measure = new Measure(view, byId('labels'), scene.units);
  const budget = new Budget();
  let selected: string | null = null;
  let selectionBox: Box3 | null = null;
  let isResultLast = false; // whether a result came after what was clicked

  const say = (text: string, isError = false): void => {
    const note = byId('note');
    note.textContent = text;
    note.classList.toggle('error', isError);
    note.hidden = text === '';
  };
  const failed = (error: unknown): void => say((error as Error).message, true);
  clouds.failed = failed;
  clouds.dressed = () => colours.legendOf();
  const act = (promise: Promise<unknown>): void => void promise.catch(failed);

  view.beforeFrame.push(() => {
    budget.apply(clouds.tilesets.values(), clouds.seenPoints);
    return false;
  });

  // Selecting: one point, element or plane.
  const redrawSection = sectionPanel(view, section, () => selectionBox);
  const select = (key: string | null): void => {
    selected = key;
    isResultLast = false;
    elements.selected = key?.startsWith('element:') ? key.slice(8) : null;
    planes.selected = key?.startsWith('plane:') ? Number(key.slice(6)) : null;
    elements.paint();
    planes.paint();
    redrawSection();
    remember();
    tell();
  };
  const unselect = (): void => {
    clouds.select(null);
    selectionBox = null;
    select(null);
    details.hide();
  };
  /** Without a server, the page shows what it knows. */
  const asked = (path: string, known: Row): string | Row => (isExported ? known : path);
  const fly = (box: Box3): Action => ({ label: 'Fly there', run: () => view.fit(box) });
  const cut = (box: Box3): Action => ({ label: 'Section box', run: () => section.set(grown(box)) });
  const showElement = (id: string): void => {
    clouds.select(null);
    const box = elements.boxOf([id]);
    selectionBox = box.isEmpty() ? null : grown(box);
    select(`element:${id}`);
    const { box: _, model: __, ...known } = elements.rows.get(id) ?? { global_id: id };
    const hide = (change: () => void) => () => { change(); elements.paint(); };
    act(details.show(nameOf(id), asked(`row/elements/${encodeURIComponent(id)}`, known), [
      ...(box.isEmpty() ? [] : [fly(box), cut(box)]),
      { label: 'Hide', run: hide(() => { elements.hiddenIds.add(id); unselect(); }) },
      { label: elements.isolated ? 'Show all' : 'Isolate', run: () => { isolate(id); showElement(id); } },
    ]));
  };
  const isolate = (id: string): void => {
    if (elements.isolated) elements.showAll();
    else {
      elements.isolated = new Set([id]);
      elements.paint();
    }
    drawElements();
  };
  const showPlane = (id: number): void => {
    const plane = planes.rows.find((each) => each.plane_id === id);
    if (!plane) return;
    clouds.select(null);
    const box = new Box3().setFromPoints(plane.outline.map((point) => view.local(point)));
    selectionBox = grown(box);
    select(`plane:${id}`);
    const { outline: _, ...known } = plane;
    act(details.show(`Plane ${id}`, asked(`row/planes/${id}`, known), [fly(box), cut(box), {
      label: 'Section plane', run: () => section.set(section.box, [...section.planes,
        new Plane().setFromNormalAndCoplanarPoint(new Vector3(plane.nx, plane.ny, plane.nz), box.getCenter(new Vector3()))]),
    }]));
  };
  const showPoint = (cloud: Cloud, id: Promise<string> | string, at: Vector3): void => {
    const box = new Box3().setFromCenterAndSize(at, new Vector3().setScalar(AROUND_POINT));
    selectionBox = box;
    const [x, y, z] = view.world(at).map((value) => Number(value.toFixed(3))) as Vec;
    const path = Promise.resolve(id).then((each) => {
      select(`point:${cloud.id}:${each}`);
      return asked(`row/points/${cloud.id}/${each}`, { point_id: each, x, y, z });
    });
    act(details.show(`Point of ${cloud.name}`, path, [fly(box), cut(box)]));
  };
  const showHit = (hit: Hit): void => {
    if (hit.kind === 'element') return showElement(hit.id);
    if (hit.kind === 'plane') return showPlane(hit.id);
    clouds.select(hit);
    showPoint(hit.node.cloud, clouds.ids(hit.node).then((ids) => String(ids[hit.index])), hit.at);
  };
  const flyToPoint = async (cloudId: number, id: string): Promise<void> => {
    const cloud = scene.clouds.find((each) => each.id === cloudId);
    if (!cloud) return;
    const { row } = await json<{ row: Record<string, Json> }>(`row/points/${cloudId}/${id}`);
    const at = view.local(['x', 'y', 'z'].map((axis) => Number(row[axis])));
    showPoint(cloud, id, at);
    view.fit(new Box3().setFromCenterAndSize(at, new Vector3().setScalar(AROUND_POINT)));
    for (const node of clouds.seen()) {
      if (node.cloud.id !== cloudId) continue;
      const index = (await clouds.ids(node)).indexOf(BigInt(id));
      if (index >= 0) return clouds.select({ node, index });
    }
  };
  const follow = (column: string, value: Json): (() => void) | null => {
    if (/(^|_)global_id$/.test(column) && typeof value === 'string' && value !== elements.selected && elements.rows.has(value)) {
      return () => { showElement(value); view.fit(elements.boxOf([value])); };
    }
    if (column === 'plane_id' && value !== planes.selected && planes.rows.some((plane) => plane.plane_id === value)) return () => showPlane(value as number);
    return null;
  };
  /** Rows of another table that have points select these, by a query of the box. */
  const related = ({ table, rows: [first] }: Relation): Action | null => {
    const [kind, ...rest] = (selected ?? '').split(':');
    const column = kind === 'element' ? 'global_id' : 'plane_id';
    if (isExported || kind === 'point' || !first || !('point_id' in first) || !(column in first)) return null;
    const value = kind === 'element' ? `'${rest.join(':').replaceAll("'", "''")}'` : rest[0];
    return { label: 'Select its points', run: () => {
      query.language = 'sql';
      query.text = `SELECT point_id FROM ${table} WHERE ${column} = ${value}`;
      act(query.run());
    } };
  };
  const details = new DetailsPanel(follow, related, () => unselect());

  // Lists: a row has its elements in two colours, all others faded.
  const nameOf = (id: string): string => elements.rows.get(id)?.name || elements.rows.get(id)?.ifc_class || id;
  const lists = listsPanel(scene.lists, nameOf, (row, withBox) => {
    elements.highlighted = row && new Map(row.elements.map((id, k): [string, Vec] => [id, k === 0 ? FIRST : SECOND]));
    clouds.isFaded = planes.isFaded = row !== null;
    unselect();
    const box = row ? boxOf(row) : null;
    section.set(row && withBox && box && !box.isEmpty() ? grown(box) : null);
    if (box) view.fit(box);
  });
  const boxOf = (row: ListRow): Box3 => {
    if (row.box) return view.localBox(row.box);
    if (row.centre) return new Box3().setFromCenterAndSize(view.local(row.centre), new Vector3().setScalar(AROUND_POINT));
    return elements.boxOf(row.elements);
  };
  for (const row of scene.lists.flatMap((list) => list.rows)) {
    if (row.status) for (const id of row.elements) elements.statuses.set(id, row.status);
  }

  // The query box.
  const colours = new ColourPanel(clouds, () => remember());
  const query = queryBox(scene, {
    result: (result: Result | null) => {
      const chosen = result?.select ?? null;
      elements.highlighted = null;
      clouds.isFaded = planes.isFaded = false;
      elements.select(chosen?.elements ?? null);
      planes.chosen = chosen?.planes ? new Set(chosen.planes) : null;
      planes.paint();
      clouds.mark(result && chosen?.points && Object.keys(chosen.points).length ? { id: result.id, selections: chosen.points } : null);
      colours.legendOf(chosen);
      resultId = result?.id ?? null;
      isResultLast = chosen !== null;
      remember();
      tell();
    },
    row: (names, row) => {
      const of = (name: string): Json => row[names.indexOf(name)] ?? null;
      const ids = row.filter((value, k) => /(^|_)global_id$/.test(names[k] ?? '') && typeof value === 'string') as string[];
      const cloud = Object.keys(clouds.marking?.selections ?? {})[0] ?? scene.clouds[0]?.id;
      if (ids[0]) {
        showElement(ids[0]);
        view.fit(elements.boxOf(ids));
      } else if (of('plane_id') !== null) {
        showPlane(Number(of('plane_id')));
      } else if (of('point_id') !== null && cloud !== undefined) {
        act(flyToPoint(Number(cloud), String(of('point_id'))));
      }
    },
    hideOthers: (isHidden) => { clouds.hideOthers = isHidden; },
  });

  const remember = (): void => {
    if (!isReady) return;
    const hasQuery = query.text.trim() !== '' && (clouds.marking !== null || elements.selection !== null || planes.chosen !== null);
    link.write({
      camera: view.state(), colour: colours.chosen, selected, language: query.language,
      query: hasQuery ? query.text : null, row: lists.current(), section: section.state(),
    });
  };
  let isReady = false;
  let later = 0;
  section.addEventListener('changed', () => { // browsers take few addresses a second, and sliders send many
    clearTimeout(later);
    later = setTimeout(remember, 200);
  });
  // What Python is told: what the box selects, unless something was clicked later: that, else the row of a list.
  const chosen = (): Chosen | null => {
    const [kind, ...rest] = (isResultLast ? '' : selected ?? '').split(':');
    if (kind === 'point') return { kind, cloud: Number(rest[0]), ids: [rest[1] ?? ''] };
    if (kind === 'element' || kind === 'plane') return { kind, ids: rest };
    if (elements.highlighted) return { kind: 'element', ids: [...elements.highlighted.keys()] };
    const cloud = Object.keys(clouds.marking?.selections ?? {})[0];
    if (cloud !== undefined) {
      return { kind: 'point', cloud: Number(cloud), ids: [], ...(query.answeredText === null ? { result: resultId ?? '' } : { text: query.answeredText }) };
    }
    if (elements.selection) return { kind: 'element', ids: [...new Set(elements.selection.global_ids)] };
    return planes.chosen ? { kind: 'plane', ids: [...planes.chosen] } : null;
  };
  let resultId: string | null = null;
  const told = scene.is_shared ? sharing((result) => query.take(result), failed) : null;
  const tell = (): void => { if (isReady) told?.(chosen()); };
  view.addEventListener('moved', remember);
  view.addEventListener('drawn', function first() {
    if (clouds.seenPoints === 0 && !elements.areThere) return;
    performance.mark('first picture');
    view.removeEventListener('drawn', first);
  });

  // The pointer.
  const place = (event: MouseEvent): [number, number] => {
    const { left, top } = canvas.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  let down: Vector2 | null = null;
  canvas.addEventListener('pointerdown', (event) => { down = event.isPrimary && event.button === 0 ? new Vector2(...place(event)) : null; });
  canvas.addEventListener('pointerup', (event) => {
    if (!down || down.distanceTo(new Vector2(...place(event))) > CLICK) return;
    down = null;
    const hit = picker.pick(...place(event));
    if (measure.isOn) {
      say(hit ? measure.add(hit.at) : 'Nothing is there: pick a point, an element or a plane.');
    } else if (hit) showHit(hit);
    else unselect();
  });
  canvas.addEventListener('dblclick', (event) => {
    const hit = picker.pick(...place(event));
    if (!hit || measure.isOn) return;
    const { eye, target } = view.state();
    const reach = view.local(eye).distanceTo(view.local(target)) * 0.25;
    view.fit(new Box3().setFromCenterAndSize(hit.at, new Vector3().setScalar(Math.min(reach, 40))));
  });

  // Panels.
  const drawElements = elementsPanel(elements);
  elements.addEventListener('painted', () => { byId('part-elements').hidden = elements.rows.size === 0; });
  byId('part-points').hidden = scene.clouds.length === 0;
  if (!isExported) {
    viewsPanel({
      file: scene.views,
      now: (title) => ({
        title, camera: view.state(), query: query.text.trim() || null,
        components: [...new Set([elements.selected, ...elements.highlighted?.keys() ?? []])].filter((id) => id !== null),
      }),
      restore: (saved) => {
        view.restore(saved.camera);
        elements.highlighted = saved.components.length
          ? new Map(saved.components.map((id, k): [string, Vec] => [id, k === 0 ? FIRST : SECOND])) : null;
        clouds.isFaded = planes.isFaded = elements.highlighted !== null;
        unselect();
        if (saved.query) {
          query.text = saved.query;
          act(query.run());
        }
      },
      say,
    });
  }
  const tabs = panels(scene.lists.length > 0);

  // Tools and keys.
  const fit = (direction?: Vector3, isSudden = false): void => view.fit(view.extent, direction, isSudden);
  const tool = (name: string, run: () => void): void => byId(`tool-${name}`).addEventListener('click', run);
  const above = (): void => fit(new Vector3(0, -1e-3, 1));
  const front = (): void => fit(new Vector3(0, -1, 0));
  const side = (): void => fit(new Vector3(1, 0, 0));
  tool('fit', () => fit());
  tool('top', above);
  tool('front', front);
  tool('side', side);
  tool('measure', () => measure.toggle());
  tool('picture', () => canvas.toBlob((picture) => {
    if (picture) save('scene.png', picture);
    else say('The browser gave no picture.', true);
  }));
  measure.addEventListener('changed', () => {
    byId('tool-measure').setAttribute('aria-pressed', String(measure.isOn));
    canvas.classList.toggle('measuring', measure.isOn);
    say(measure.isOn ? 'Pick the first point.' : '');
  });
  byId<HTMLInputElement>('point-size').addEventListener('input', (event) => { clouds.size = Number((event.target as HTMLInputElement).value); });
  byId<HTMLInputElement>('depth-shading').addEventListener('change', (event) => {
    view.shading.isOn = (event.target as HTMLInputElement).checked;
    view.redraw();
  });
  const most = byId<HTMLSelectElement>('budget');
  most.value = String(budget.points);
  most.addEventListener('change', () => {
    budget.points = Number(most.value);
    view.redraw();
  });
  byId('copy-link').addEventListener('click', () => {
    remember();
    // an exported page of another machine without TLS has no clipboard
    const copied = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error());
    copied.then(() => say('The link is in the clipboard.'), () => say('The link is in the address of this page.'));
  });
  const ofElement = (run: (id: string) => void) => () => { if (elements.selected) run(elements.selected); };
  view.controls.listenToKeyEvents(canvas);
  keys([
    { keys: 'F', label: 'all in view', run: () => fit() },
    { keys: '1', label: 'from above', run: above },
    { keys: '2', label: 'from the south', run: front },
    { keys: '3', label: 'from the east', run: side },
    { keys: 'G', label: 'fly to what is selected', run: () => { if (selectionBox) view.fit(selectionBox); } },
    { keys: 'H', label: 'hide the selected element', run: ofElement((id) => { elements.hiddenIds.add(id); unselect(); }) },
    { keys: 'I', label: 'isolate it, or show all again', run: ofElement(isolate) },
    { keys: 'A', label: 'show all elements', run: () => { elements.showAll(); drawElements(); } },
    { keys: 'J', label: 'next row of the list', run: () => lists.step(1) },
    { keys: 'K', label: 'row before', run: () => lists.step(-1) },
    { keys: 'B', label: 'section box around the selection, or none', run: () => section.set(section.box ? null : selectionBox) },
    { keys: 'M', label: 'measure', run: () => measure.toggle() },
    { keys: 'Escape', label: 'end measuring, unselect, leave the list', run: () => {
      measure.clear();
      lists.clear();
      unselect();
    } },
    ...(isExported ? [] : [{ keys: 'Q', label: 'to the query box', run: () => { tabs('query'); query.focus(); } }]),
    { keys: '?', label: 'this help', run: () => byId('help-open').click() },
    { keys: 'Ctrl Enter', label: 'run the query' },
    { keys: 'Ctrl Space', label: 'complete; Tab takes the word' },
    { keys: 'Alt ↑ ↓', label: 'queries asked before' },
    { keys: '← ↑ → ↓', label: 'move, in the scene' },
  ]);

  theme((now) => {
    view.background(now.background);
    clouds.theme(now.muted, now.accentUnit);
    elements.theme(now.muted, now.accent);
    planes.theme(now.accent);
    measure.colour = now.line;
  });

  // What there is: clouds may still be built.
  const contents = (): void => {
    const toggle = (name: string, detail: string, isOn: boolean, set: (isOn: boolean) => void) => h('li', {}, h('label', {},
      h('input', { type: 'checkbox', checked: isOn, onchange: (event: Event) => {
        set((event.target as HTMLInputElement).checked);
        view.redraw();
      } }), h('span', { class: 'name' }, name), h('span', { class: 'count' }, detail)));
    fill(byId('contents'),
      ...scene.clouds.map((cloud) => {
        const tiles = clouds.tilesets.get(cloud.id);
        const detail = cloud.state === 'building' ? `building ${Math.round(cloud.progress * 100)} %`
          : cloud.state === 'failed' ? cloud.message ?? 'failed' : count(cloud.points);
        return toggle(cloud.name, detail, tiles?.group.visible ?? true, (isOn) => {
          if (tiles) tiles.group.visible = isOn;
          tiles?.changed();
        });
      }),
      ...scene.models.map((model) => {
        const tiles = elements.tilesets.get(model.id);
        const total = [...elements.rows.values()].filter((row) => row.model === model.id).length;
        return toggle(model.name, plural(total, 'element'), tiles?.group.visible ?? true, (isOn) => {
          if (tiles) tiles.group.visible = isOn;
          tiles?.changed();
        });
      }));
    if (scene.planes) append(byId('contents'), [toggle('planes', count(planes.rows.length), planes.isVisible, (isOn) => {
      planes.isVisible = isOn;
      planes.paint();
    })]);
  };
  const offerClouds = (all: Cloud[]): void => {
    for (const cloud of all) clouds.add(cloud);
    view.extent = new Box3();
    for (const { box } of [...all, ...scene.models]) if (box) view.extent.union(view.localBox(box));
    colours.offer(all);
    contents();
  };
  const poll = async (): Promise<void> => {
    const wasEmpty = view.extent.isEmpty();
    scene.clouds = (await json<SceneFile>('scene.json')).clouds;
    offerClouds(scene.clouds);
    if (wasEmpty) fit(new Vector3(-0.6, -1, 0.7), true);
    again();
  };
  const again = (): void => {
    if (scene.clouds.some((cloud) => cloud.state === 'building')) setTimeout(() => act(poll()), POLL);
  };

  offerClouds(scene.clouds);
  again();
  if (linked.camera) view.restore(linked.camera, true);
  else fit(new Vector3(-0.6, -1, 0.7), true);
  if (linked.colour) colours.by(linked.colour);
  await Promise.all([elements.load(scene.elements, scene.models), scene.planes && planes.load(scene.planes.rows)]);
  contents();
  lists.draw();
  drawElements();
  redrawSection();
  if (linked.row.length) {
    lists.open(linked.row);
    if (linked.camera) view.restore(linked.camera, true);
  }
  section.restore(linked.section);
  isReady = true;
  const [kind, ...rest] = (linked.selected ?? '').split(':');
  if (kind === 'element' && rest[0]) showElement(rest[0]);
  if (kind === 'plane') showPlane(Number(rest[0]));
  if (kind === 'point' && rest[1] && !isExported) act(flyToPoint(Number(rest[0]), rest[1]));
  if (linked.query && !isExported) {
    query.text = linked.query;
    query.language = linked.language;
    await query.run();
  }
  remember();
  const troubles = [...clouds.tilesets.values(), ...elements.tilesets.values()].filter((each) => each.failure).length;
  if (troubles) say(`${plural(troubles, 'tileset')} could not be read.`, true);
  // for whoever drives the page, such as its tests and benchmarks
  Object.assign(window, { spatialq: { whenIdle: () => view.whenIdle(), turn: (frames: number) => view.turn(frames), points: () => clouds.seenPoints } });
}

/** Tabs: panels beside the scene; the query is below it where there is room, and one of the tabs where not. */
function panels(hasLists: boolean): (name: string) => void {
  const tabs = [...document.querySelectorAll<HTMLElement>('#tabs [role=tab]')];
  if (isExported) {
    for (const tab of tabs) tab.hidden = ['query', 'views'].includes(tab.dataset.panel ?? '');
    byId('panel-query').remove();
  }
  const show = (name: string): void => {
    document.body.dataset.panel = name;
    for (const tab of tabs) {
      const isShown = tab.dataset.panel === name;
      tab.setAttribute('aria-selected', String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      if (tab.dataset.panel !== 'query') byId(`panel-${tab.dataset.panel}`).hidden = !isShown;
    }
  };
  for (const tab of tabs) {
    tab.addEventListener('click', () => show(document.body.dataset.panel === tab.dataset.panel && narrow.matches ? '' : tab.dataset.panel ?? ''));
    tab.addEventListener('keydown', (event) => {
      const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
      const seen = tabs.filter((each) => each.offsetParent !== null);
      const next = step && seen[(seen.indexOf(tab) + step + seen.length) % seen.length];
      if (next) { next.focus(); next.click(); }
    });
  }
  const narrow = matchMedia('(max-width: 799px)');
  const first = narrow.matches ? '' : hasLists ? 'lists' : 'scene';
  narrow.addEventListener('change', () => show(narrow.matches ? '' : 'scene'));
  show(first);
  return (name) => { if (narrow.matches) show(name); };
}

function grown(box: Box3): Box3 {
  return box.clone().expandByScalar(Math.max(box.getSize(new Vector3()).length() * 0.1, 0.1));
}

start().catch((error: Error) => {
  const note = byId('note');
  note.textContent = error.message;
  note.classList.add('error');
  note.hidden = false;
});
