"""What a camera sees, by brute force: an oracle for pictures."""

import numpy as np

NOTHING = -1


def cast(camera, triangles, wide, tall):
    """For each pixel the nearest triangle that its ray meets, by Moller and Trumbore, and how far.

    Also whether the answer hangs on rounding: the ray passes near an edge of a triangle, or near
    one behind the other.
    """
    eye, target, up = (np.array(v, float) for v in (camera.eye, camera.target, camera.up))
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    above = np.cross(right, forward)
    x = ((np.arange(wide) + 0.5) / wide * 2 - 1)[None, :, None]
    y = (1 - (np.arange(tall) + 0.5) / tall * 2)[:, None, None]
    half = np.tan(np.radians(camera.fov or 60) / 2)
    half = half if camera.view_height is None else camera.view_height / 2
    aside = x * half * wide / tall * right + y * half * above
    origin, ray = (eye, forward + aside) if camera.view_height is None else (eye + aside, forward)
    item, depth = np.full((tall, wide), NOTHING), np.full((tall, wide), np.inf)
    unsure = np.zeros((tall, wide), bool)
    far = np.inf if camera.far is None else camera.far
    for k, (a, b, c) in enumerate(triangles):
        normal = np.cross(b - a, c - a)
        t = (a - origin) @ normal / (ray @ normal)
        p = origin + t[..., None] * ray
        sides = ((b, c), (c, a), (a, b))
        weights = np.stack([np.cross(v - u, p - u) @ normal / (normal @ normal) for u, v in sides])
        least = weights.min(axis=0)
        unsure |= (np.abs(weights).min(axis=0) < 1e-9) & (least > -1e-9)
        unsure |= (np.abs(t - camera.near) < 1e-9) | (np.abs(t - far) < 1e-9)
        unsure |= (least >= 0) & (np.abs(t - depth) < 1e-9)
        meets = (least >= 0) & (camera.near < t) & (t <= far) & (t > 0) & (t < depth)
        depth[meets], item[meets] = t[meets], k
    return item, depth, unsure
