// Depth shading (eye-dome lighting): what is seen just behind the edge of something nearer is darker. Points have no
// normals, so that nothing else tells their shape where their colours do not.
// C. Boucheny, "Visualisation scientifique de grands volumes de données", 2009.
import {
  BufferGeometry, Camera, DepthTexture, Float32BufferAttribute, Mesh, type PerspectiveCamera, type Scene, ShaderMaterial, Vector2,
  type WebGLRenderer, WebGLRenderTarget,
} from 'three';

const RADIUS = 1.5; // CSS pixels to what it is compared with
const STRENGTH = 120; // a depth that is 1/120 octave behind all around is darker by 1/e
const AROUND = 8;

const VERTEX = /* glsl */ `
  varying vec2 at;
  void main() {
    at = position.xy * 0.5 + 0.5;
    gl_Position = vec4(position, 1.0);
  }`;

const FRAGMENT = /* glsl */ `
  uniform sampler2D colours, depths;
  uniform vec2 radius;
  uniform float near, far;
  varying vec2 at;
  float octave(vec2 place) {
    return log2(near * far / (far - texture2D(depths, place).x * (far - near)));
  }
  void main() {
    float own = octave(at), behind = 0.0;
    for (int k = 0; k < ${AROUND}; k++) {
      float angle = float(k) * ${(2 * Math.PI / AROUND).toFixed(6)};
      behind += max(own - octave(at + radius * vec2(cos(angle), sin(angle))), 0.0);
    }
    bool isEmpty = texture2D(depths, at).x == 1.0;
    float light = isEmpty ? 1.0 : exp(-${(STRENGTH / AROUND).toFixed(1)} * behind);
    gl_FragColor = vec4(texture2D(colours, at).rgb * light, 1.0);
  }`;

export class DepthShading {
  isOn = false;
  private readonly target = new WebGLRenderTarget(1, 1, { samples: 4, depthTexture: new DepthTexture(1, 1) });
  private readonly uniforms = {
    colours: { value: this.target.texture }, depths: { value: this.target.depthTexture },
    radius: { value: new Vector2() }, near: { value: 0 }, far: { value: 0 },
  };
  private readonly screen = new Mesh(
    new BufferGeometry().setAttribute('position', new Float32BufferAttribute([-1, -1, 0, 3, -1, 0, -1, 3, 0], 3)),
    new ShaderMaterial({ vertexShader: VERTEX, fragmentShader: FRAGMENT, uniforms: this.uniforms, depthTest: false, depthWrite: false }),
  );
  private readonly eye = new Camera();

  constructor() { this.screen.frustumCulled = false; }

  render(renderer: WebGLRenderer, scene: Scene, camera: PerspectiveCamera): void {
    if (!this.isOn) {
      renderer.render(scene, camera);
      return;
    }
    const size = renderer.getDrawingBufferSize(new Vector2());
    this.target.setSize(size.x, size.y);
    const { radius, near, far } = this.uniforms;
    radius.value.setScalar(RADIUS * renderer.getPixelRatio()).divide(size);
    near.value = camera.near;
    far.value = camera.far;
    renderer.setRenderTarget(this.target);
    renderer.render(scene, camera);
    renderer.setRenderTarget(null);
    renderer.render(this.screen, this.eye);
  }
}
