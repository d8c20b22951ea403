// Light or dark: what the system says, until the button says otherwise; colours are those of app.css.
import { Color } from 'three';
import type { Vec } from './api';
import { byId } from './dom';

const KEPT = 'spatialq.theme';

export interface Theme { background: Color; accent: Vec; accentUnit: Color; muted: Color; line: Color }

export function theme(changed: (theme: Theme) => void): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const root = document.documentElement;
  const apply = (): void => {
    const given = stored();
    root.dataset.theme = given ?? (dark.matches ? 'dark' : 'light');
    const style = getComputedStyle(root);
    const read = (name: string): string => style.getPropertyValue(name).trim();
    const hex = read('--accent-scene').slice(1);
    const accent = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)) as Vec;
    changed({ background: srgb(read('--stage')), accent, accentUnit: srgb(read('--accent-scene')), muted: srgb(read('--muted-scene')), line: srgb(read('--text')) });
  };
  dark.addEventListener('change', apply);
  byId('theme').addEventListener('click', () => {
    store(root.dataset.theme === 'dark' ? 'light' : 'dark');
    apply();
  });
  apply();
}

/** The numbers of a colour as they are written: our shaders work in sRGB. */
function srgb(hex: string): Color {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
  return new Color(r, g, b);
}

let chosen: string | null = null;
function stored(): string | null {
  try { return localStorage.getItem(KEPT) ?? chosen; } catch { return chosen; }
}
function store(value: string): void {
  chosen = value;
  try { localStorage.setItem(KEPT, value); } catch { /* no storage */ }
}
