// Khronos' validator on .glb files: prints its messages by file, JSON. node validate.js FILE...
import { readFile } from 'node:fs/promises';
import validator from 'gltf-validator';

const found = {};
for (const path of process.argv.slice(2)) {
  const report = await validator.validateBytes(new Uint8Array(await readFile(path)), { maxIssues: 0 });
  found[path] = report.issues.messages;
}
console.log(JSON.stringify(found));
