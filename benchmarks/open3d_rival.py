"""Planes by Open3D, in a process of its own: run by plane_quality.py with a Python that has it.

python benchmarks/open3d_rival.py METHOD IN.npz OUT.npz

IN: x, y, z, distance (of the farthest point of a plane), limit (planes that RANSAC looks for).
OUT: planes (nx, ny, nz, d a row), label (row of a point's plane, or -1), boxed (whether a point is
in the oriented box of a patch, or an inlier of RANSAC), seconds.
Methods, all on coordinates relative to the mean, in which Open3D loses no digits:

patches         detect_planar_patches (60, 75, 0.75, knn 30), normals of 30 neighbours
patches-100     the same with 100 neighbours for both
patches-voxel   the same with 30 on one point a voxel, of which there are about 100,000
patches-random  the same with 30 on 100,000 points at random
ransac          segment_plane (3 points, 1000 iterations) again on what is left

A patch has the points within `distance` of its plane and a quarter more than its box; a plane of
RANSAC has its inliers at that distance.
"""

import sys
import time

import numpy as np
import open3d as o3d

SPARSE = 100_000
MARGIN = 1.25  # of a patch's box in its plane: it often falls short of the points of the plane


def patches(cloud, knn):
    if not cloud.has_normals():
        cloud.estimate_normals(o3d.geometry.KDTreeSearchParamKNN(knn))
    return cloud.detect_planar_patches(
        normal_variance_threshold_deg=60,
        coplanarity_deg=75,
        outlier_ratio=0.75,
        min_plane_edge_length=0,
        min_num_points=0,
        search_param=o3d.geometry.KDTreeSearchParamKNN(knn),
    )


def voxels(cloud):
    """One point a voxel of such a size that about SPARSE are left."""
    extent = cloud.get_max_bound() - cloud.get_min_bound()
    low, high = extent.max() / 1e4, extent.max() / 4
    for _ in range(12):
        size = np.sqrt(low * high)
        fewer = cloud.voxel_down_sample(size)
        low, high = (size, high) if len(fewer.points) > SPARSE else (low, size)
        if 0.9 * SPARSE < len(fewer.points) < 1.1 * SPARSE:
            break
    return fewer


def assigned(points, found, distance):
    """Row of the nearest patch whose box has the point within it, or -1; whether any has it."""
    label = np.full(len(points), -1, np.int32)
    nearest = np.full(len(points), distance)
    boxed = np.zeros(len(points), bool)
    for k, each in enumerate(found):
        local = np.abs((points - each.center) @ each.R)
        boxed |= np.all(local <= each.extent / 2, axis=1)
        inside = np.all(local[:, :2] <= MARGIN * each.extent[:2] / 2, axis=1)
        better = inside & (local[:, 2] < nearest)
        label[better], nearest[better] = k, local[better, 2]
    return label, boxed


def ransac(cloud, distance, limit):
    n = len(cloud.points)
    label, planes, left = np.full(n, -1, np.int32), [], np.arange(n)
    while len(planes) < limit and left.size > max(100, n // 100):
        (*normal, minus_d), inliers = cloud.segment_plane(distance, 3, 1000)
        label[left[inliers]] = len(planes)
        planes.append([*normal, -minus_d])
        left = np.delete(left, inliers)
        cloud = cloud.select_by_index(inliers, invert=True)
    return planes, label


def main():
    method, source, target = sys.argv[1:]
    with np.load(source) as given:
        points = np.column_stack([given["x"], given["y"], given["z"]])
        distance, limit = float(given["distance"]), int(given["limit"])
    middle = points.mean(axis=0)
    points -= middle
    o3d.utility.random.seed(1)
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(points))
    start = time.perf_counter()
    if method == "ransac":
        planes, label = ransac(cloud, distance, limit)
        seconds = time.perf_counter() - start
        boxed = label >= 0
    else:
        if method == "patches-voxel":
            cloud = voxels(cloud)
        if method == "patches-random":
            cloud = cloud.random_down_sample(SPARSE / len(points))
        found = patches(cloud, 100 if method == "patches-100" else 30)
        seconds = time.perf_counter() - start
        planes = [[*each.R[:, 2], each.R[:, 2] @ each.center] for each in found]
        label, boxed = assigned(points, found, distance)
    planes = np.array(planes).reshape(-1, 4)
    planes[:, 3] += planes[:, :3] @ middle
    np.savez(target, planes=planes, label=label, boxed=boxed, seconds=seconds)


if __name__ == "__main__":
    main()
