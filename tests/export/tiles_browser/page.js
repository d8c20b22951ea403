// Shows a tileset and says what is drawn of it: the page of test_tiles_browser.py.
import { Color, DirectionalLight, Group, PerspectiveCamera, Scene, Sphere, WebGLRenderer } from 'three';
import { GLTFLoader } from 'three/examples/jsm/loaders/GLTFLoader.js';
import { MeshoptDecoder } from 'three/examples/jsm/libs/meshopt_decoder.module.js';
import { TilesRenderer } from '3d-tiles-renderer/three';
import { GLTFExtensionsPlugin } from '3d-tiles-renderer/three/plugins';
import { ImplicitTilingPlugin } from '3d-tiles-renderer/core/plugins';

const renderer = new WebGLRenderer({ preserveDrawingBuffer: true });
renderer.setSize(320, 240);
document.body.appendChild(renderer.domElement);

async function show(url, errorTarget) {
  const scene = new Scene();
  scene.background = new Color(0);
  const light = new DirectionalLight(0xffffff, 3);
  light.position.set(-1, -2, 3);
  scene.add(light);
  const camera = new PerspectiveCamera(50, 320 / 240, 0.1, 1e7);
  const tiles = new TilesRenderer(url);
  tiles.registerPlugin(new GLTFExtensionsPlugin({ metadata: true, meshoptDecoder: MeshoptDecoder }));
  tiles.registerPlugin(new ImplicitTilingPlugin());
  tiles.errorTarget = errorTarget;
  tiles.setCamera(camera);
  tiles.setResolutionFromRenderer(camera, renderer);
  const errors = [];
  tiles.addEventListener('load-error', (event) => errors.push(String(event.error)));
  const group = new Group();
  group.add(tiles.group);
  scene.add(group);
  const sphere = new Sphere();
  let still = 0;
  for (let frame = 0; frame < 2000 && still < 4 && errors.length === 0; frame++) {
    await new Promise((done) => setTimeout(done, 5));
    if (tiles.getBoundingSphere(sphere)) {
      // the group is moved, so that float32 is enough for the camera
      group.position.copy(sphere.center).negate();
      camera.position.set(0, -2.2 * sphere.radius, 1.2 * sphere.radius);
      camera.up.set(0, 0, 1);
      camera.lookAt(0, 0, 0);
      scene.updateMatrixWorld(true);
    }
    camera.updateMatrixWorld();
    tiles.update();
    renderer.render(scene, camera);
    const { queued, downloading, parsing } = tiles.stats;
    const idle = queued + downloading + parsing === 0 && tiles.visibleTiles.size > 0;
    still = idle ? still + 1 : 0;
  }
  let points = 0, triangles = 0;
  const tables = [];
  tiles.group.traverse((object) => {
    if (object.isPoints) points += object.geometry.attributes.position.count;
    if (object.isMesh) {
      triangles += object.geometry.index.count / 3;
      const found = object.userData.structuralMetadata ?? object.parent?.userData.structuralMetadata;
      const feature = object.geometry.attributes._feature_id_0;
      if (found && feature) {
        // the array of the attribute has padding
        const ids = [...new Set(Array.from({ length: feature.count }, (_, k) => feature.getX(k)))];
        tables.push(...ids.map((id) => found.getPropertyTableData([0], [id])[0]));
      }
    }
  });
  const gl = renderer.getContext();
  const pixels = new Uint8Array(320 * 240 * 4);
  gl.readPixels(0, 0, 320, 240, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
  let covered = 0;
  const sum = [0, 0, 0];
  for (let k = 0; k < pixels.length; k += 4) {
    if (pixels[k] + pixels[k + 1] + pixels[k + 2] > 0) {
      covered++;
      for (let c = 0; c < 3; c++) sum[c] += pixels[k + c];
    }
  }
  const mean = sum.map((each) => each / Math.max(covered, 1));
  tiles.dispose();
  return { errors, points, triangles, tables, covered, mean, isStill: still === 4 };
}

window.show = show;
