// Bundles the page into a folder: node build.js [FOLDER]. The same sources and packages give the same bytes.
import { build } from 'esbuild';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, '../spatialq/serve/page');
mkdirSync(folder, { recursive: true });
const { metafile } = await build({
  entryPoints: [join(here, 'src/main.ts')],
  outfile: join(folder, 'app.js'),
  absWorkingDir: here,
  bundle: true,
  minify: true,
  format: 'iife', // a page that was opened by a double click has no modules
  target: 'es2022',
  legalComments: 'none', // the licences are in THIRD_PARTY.txt
  metafile: true,
});
for (const name of ['index.html', 'app.css']) cpSync(join(here, name), join(folder, name));

// Packages of which code is in the bundle, with their licences; copies inside of three are named in files of their own.
const packages = new Set(Object.keys(metafile.outputs).flatMap((output) =>
  Object.entries(metafile.outputs[output].inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
    .filter(Boolean)));
const inside = new Set(Object.keys(metafile.inputs).filter((path) => path.includes('/jsm/libs/'))
  .map((path) => path.replace(/.*\/jsm\/libs\//, '')));
let text = 'The page of spatialq contains code of these packages.\n';
for (const name of [...packages].sort()) {
  const root = join(here, 'node_modules', name);
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const file = ['LICENSE', 'LICENSE.md', 'LICENSE.txt', 'LICENCE'].map((each) => join(root, each)).find(existsSync);
  if (!file) throw new Error(`${name} has no licence text`);
  text += `\n${'='.repeat(80)}\n${name} ${version} (${license})\n\n${readFileSync(file, 'utf8').trim()}\n`;
}
for (const name of [...inside].sort()) {
  const notice = /^\s*(?:\/\/.*\n|\/\*[\s\S]*?\*\/\s*)+/.exec(readFileSync(join(here, 'node_modules/three/examples/jsm/libs', name), 'utf8'));
  text += `\n${'='.repeat(80)}\n${name}, as in three\n\n${(notice?.[0] ?? '').trim()}
// The text of the MIT licence is the one above, of three.\n`;
}
writeFileSync(join(folder, 'THIRD_PARTY.txt'), text);
