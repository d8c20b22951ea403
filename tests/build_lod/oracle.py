"""Plain steps of `build_lod`, by Schütz et al. 2023: dictionaries, one point after the other.

Nothing of ours is imported. Places, weights and sums are Python's integers, so nothing is rounded
but what is defined to be. `check` needs none of that and is for large clouds.
"""

from fractions import Fraction
from math import isqrt

import numpy as np

BITS = 53
PART = 1024  # of a voxel's edge: the unit of 'weighted'
CHANNELS = 4
MIX = (1 << 64) - 1


def cube(x, y, z):
    """Lowest corner and side."""
    low = [min(values) for values in (x, y, z)]
    size = max(max(values) - least for values, least in zip((x, y, z), low, strict=True))
    return low, size


def place(value, low, size):
    if size == 0:
        return 0
    return min(int((value - low) / size * 2.0**BITS), 2**BITS - 1)


def shifted(value, bits):
    return value >> bits if bits >= 0 else value << -bits


def morton(cell):
    """Interleave the bits of x, y and z, x the highest of each three."""
    code = 0
    for bit in reversed(range(max(each.bit_length() for each in cell))):
        for each in cell:
            code = 2 * code + (each >> bit & 1)
    return code


class Node:
    """A cell of the octree with its points, in the order in which they came."""

    def __init__(self, level, cell, inside, parent=None):
        self.level, self.cell, self.inside, self.parent = level, cell, inside, parent
        self.children = {}
        self.voxels = {}  # Morton code -> (colour, mass, representative)


def split(node, places, max_points):
    if len(node.inside) <= max_points or len({places[p] for p in node.inside}) == 1:
        return
    groups = {}
    for p in node.inside:
        cell = tuple(q >> (BITS - node.level - 1) for q in places[p])
        groups.setdefault(cell, []).append(p)
    for cell in sorted(groups, key=morton):
        x, y, z = (each & 1 for each in cell)
        child = Node(node.level + 1, cell, groups[cell], node)
        node.children[4 * x + 2 * y + z] = child
        split(child, places, max_points)


def draw(point_id, position, seed):
    """Key of a point in the lottery of 'random'."""
    h = (point_id + 0x9E3779B97F4A7C15 * (seed + 1)) & MIX
    h ^= h >> 30
    h = h * 0xBF58476D1CE4E5B9 & MIX
    h ^= h >> 27
    h = h * 0x94D049BB133111EB & MIX
    h ^= h >> 31
    return (h >> 32) << 32 | (0xFFFFFFFF - position)


def voxelise(node, places, colour, point_id, strategy, grid_size, seed):
    """Give the voxels of an inner node whose children have theirs."""
    below = BITS - node.level - (grid_size.bit_length() - 1)  # bits of a place within a voxel
    cells = {}
    for p in node.inside:
        cell = tuple(shifted(q, below) % grid_size for q in places[p])
        cells.setdefault(cell, []).append(p)
    if strategy == "weighted":
        colours = weigh(node, cells, places, colour, below, grid_size)
    for cell in sorted(cells, key=morton):
        members = cells[cell]
        chosen = min(members)
        if strategy == "random":
            chosen = max(members, key=lambda p: draw(point_id[p], p, seed))
        if strategy == "average":
            mean = [sum(colour[p][c] for p in members) // len(members) for c in range(CHANNELS)]
        elif strategy == "weighted":
            mean = colours[cell]
        else:
            mean = colour[chosen]
        node.voxels[morton(cell)] = (list(mean), len(members), chosen)


def weigh(node, cells, places, colour, below, grid_size):
    """Colours of the cells by the node's samples in and around them: section 4.2.4."""
    sums = {cell: [0] * (CHANNELS + 1) for cell in cells}
    for position, mass, tint in samples(node, places, colour, below, grid_size):
        own = [u // PART for u in position]
        inside = [u % PART for u in position]
        for step in np.ndindex(2, 2, 2):
            cell, squared = [], 0
            for axis in range(3):
                off = abs(inside[axis] - PART // 2)
                if step[axis]:
                    off = PART - off
                side = 1 if inside[axis] >= PART // 2 else -1
                cell.append(own[axis] + side * step[axis])
                squared += off * off
            weight = PART - isqrt(squared)
            if weight > 0 and tuple(cell) in sums:
                total = sums[tuple(cell)]
                for c in range(CHANNELS):
                    total[c] += weight * mass * tint[c]
                total[-1] += weight * mass
    return {cell: [each // total[-1] for each in total[:-1]] for cell, total in sums.items()}


def samples(node, places, colour, below, grid_size):
    """Position in the node's grid, mass and colour of what its children hold."""
    for child in node.children.values():
        if child.children:
            half = [each & 1 for each in child.cell]
            for code, (tint, mass, _) in child.voxels.items():
                at = unravel(code)
                # an odd voxel of the child is the upper half of one of the node's
                position = [
                    (grid_size * h + i) * (PART // 2) + PART // 4
                    for h, i in zip(half, at, strict=True)
                ]
                yield position, mass, tint
        else:
            for p in child.inside:
                parts = (shifted(q, below - 10) for q in places[p])
                yield [part % (grid_size * PART) for part in parts], 1, colour[p]


def unravel(code):
    """Cell of a Morton code."""
    cell = [0, 0, 0]
    for bit in range(code.bit_length()):
        cell[2 - bit % 3] |= (code >> bit & 1) << bit // 3
    return cell


def tree_of(x, y, z, point_id, colour, *, strategy, max_points, grid_size, seed):
    """Nodes breadth first; `colour` has red, green, blue and intensity of the points."""
    low, size = cube(x, y, z)
    places = [
        tuple(place(value, least, size) for value, least in zip(point, low, strict=True))
        for point in zip(x, y, z, strict=True)
    ]
    root = Node(0, (0, 0, 0), list(range(len(x))))
    split(root, places, max_points)
    nodes = [root]
    for node in nodes:  # which grows
        nodes.extend(node.children.values())
    for node in reversed(nodes):
        if node.children:
            voxelise(node, places, colour, point_id, strategy, grid_size, seed)
    return nodes


def build(x, y, z, point_id, colour, **options):
    """Give the fields of the tree as lists."""
    x, y, z, point_id, colour = (np.asarray(each).tolist() for each in (x, y, z, point_id, colour))
    nodes = tree_of(x, y, z, point_id, colour, **options)
    order, first = [], {}
    visit(nodes[0], order, first)
    number = {node: k for k, node in enumerate(nodes)}
    inner = [node for node in nodes if node.children]
    return {
        "level": [node.level for node in nodes],
        "cell": [node.cell for node in nodes],
        "parent": [number.get(node.parent, -1) for node in nodes],
        "first_child": [min(map(number.get, node.children.values()), default=-1) for node in nodes],
        "children": [sum(1 << c for c in node.children) for node in nodes],
        "first": [first[node] for node in nodes],
        "points": [len(node.inside) for node in nodes],
        "order": order,
        "voxel_first": np.cumsum([0, *(len(node.voxels) for node in nodes)]).tolist(),
        "code": [code for node in inner for code in node.voxels],
        "colour": [tint for node in inner for tint, _, _ in node.voxels.values()],
        "mass": [mass for node in inner for _, mass, _ in node.voxels.values()],
        "representative": [chosen for node in inner for *_, chosen in node.voxels.values()],
    }


def prepared(columns):
    """Lists of x, y, z, point_id, colours and classes, by ascending point_id.

    Colours that are None become grey: the intensity, or without it mid-grey.
    """
    n = len(columns["x"])
    order = sorted(range(n), key=columns["point_id"].__getitem__)
    of = {
        name: None if values is None else [values[p].item() for p in order]
        for name, values in columns.items()
    }
    grey = of["intensity"] or [32768] * n
    tints = [of[name] or grey for name in ("red", "green", "blue")]
    colour = list(zip(*tints, of["intensity"] or [0] * n, strict=True))
    return (
        *(of[name] for name in ("x", "y", "z", "point_id")),
        colour,
        of["classification"] or [0] * n,
    )


def rows(columns, *, full_precision, grid_size, **options):
    """Give the table: a dictionary for each node, its samples a list of tuples.

    Points need not be in the order of their ids.
    """
    x, y, z, ids, colour, classes = prepared(columns)
    low, size = cube(x, y, z)

    def corner(cell, edge):
        return [float(Fraction(least) + i * edge) for least, i in zip(low, cell, strict=True)]

    found = []
    names = {None: None}
    for node in tree_of(x, y, z, ids, colour, grid_size=grid_size, **options):
        edge = Fraction(size) / 2**node.level
        spacing = edge / grid_size if node.children else 0
        names[node] = "r"
        if node.parent:
            cx, cy, cz = (each & 1 for each in node.cell)
            names[node] = f"{names[node.parent]}{4 * cx + 2 * cy + cz}"
        inside = [(x[p], y[p], z[p], *colour[p], classes[p], ids[p]) for p in node.inside]
        if node.children:
            inside = []
            for code, (tint, _, p) in node.voxels.items():
                cells = zip(node.cell, unravel(code), strict=True)
                middle = [grid_size * c + i + Fraction(1, 2) for c, i in cells]
                at = (x[p], y[p], z[p]) if full_precision else corner(middle, spacing)
                inside.append((*at, *tint, classes[p], ids[p]))
        xmin, ymin, zmin = corner(node.cell, edge)
        found.append(
            {
                "node": names[node],
                "level": node.level,
                "parent": names[node.parent],
                "xmin": xmin,
                "ymin": ymin,
                "zmin": zmin,
                "size": float(edge),
                "spacing": float(spacing),
                "is_leaf": not node.children,
                "points": len(node.inside),
                "count": len(inside),
                "samples": inside,
            }
        )
    return found


def visit(node, order, first):
    """Put the points of leaf after leaf, depth first."""
    first[node] = len(order)
    if not node.children:
        order.extend(node.inside)
    for child in node.children.values():
        visit(child, order, first)


def check(x, y, z, colour, options, tree):
    """What must hold of every tree; of 'weighted' without the colours."""
    max_points = options.max_points
    low = np.array([values.min() for values in (x, y, z)])
    size = max(values.max() - least for values, least in zip((x, y, z), low, strict=True))
    relative = (np.column_stack([x, y, z]) - low) / (size or 1.0)
    places = np.minimum(np.floor(relative * 2.0**BITS), 2.0**BITS - 1).astype(np.uint64)
    level, cell, first, points = tree.level, tree.cell, tree.first, tree.points
    last = first + points
    is_leaf = tree.first_child < 0
    nodes = len(level)
    assert nodes == len(points) == len(cell) == len(tree.parent) == len(tree.voxel_first) - 1
    assert (np.bincount(tree.order, minlength=len(x)) == 1).all()
    assert level[0] == first[0] == 0
    assert points[0] == len(x)
    assert tree.parent[0] == -1
    assert (np.diff(level) >= 0).all()
    leaves = np.flatnonzero(is_leaf)[np.argsort(first[is_leaf])]
    np.testing.assert_array_equal(last[leaves], [*first[leaves[1:]], len(x)])
    # a point lies in its leaf, the leaf in its parent and so on
    sorted_places = places[tree.order]
    deep = np.repeat(leaves, points[leaves])
    shift = (BITS - level[deep]).astype(np.uint64)[:, None]
    np.testing.assert_array_equal(sorted_places >> shift, cell[deep])
    inside = tree.order.astype(np.int64)
    assert (np.diff(inside)[np.diff(deep) == 0] > 0).all()
    children = np.flatnonzero(tree.parent >= 0)
    parents = tree.parent[children]
    np.testing.assert_array_equal(level[children], level[parents] + 1)
    np.testing.assert_array_equal(cell[children] >> np.uint64(1), cell[parents])
    assert (first[children] >= first[parents]).all()
    assert (last[children] <= last[parents]).all()
    under = np.bincount(parents, points[children], nodes)
    np.testing.assert_array_equal(under[~is_leaf], points[~is_leaf])
    # siblings follow one another, in the order of their numbers
    number = (cell[children].astype(np.int64) & 1) @ [4, 2, 1]
    bits = np.bincount(parents, 1 << number, nodes)
    np.testing.assert_array_equal(tree.children, bits)
    heads = np.diff(parents, prepend=-1) != 0
    assert (np.diff(number, prepend=-1)[~heads] > 0).all()
    np.testing.assert_array_equal(tree.first_child[parents[heads]], children[heads])
    # cells are split as they should be
    assert (points[~is_leaf] > max_points).all()
    assert (points > 0).all()
    for k in np.flatnonzero(is_leaf & (points > max_points)):
        assert (sorted_places[first[k] : last[k]] == sorted_places[first[k]]).all()
    check_voxels(sorted_places, colour, options, tree)


def check_voxels(places, colour, options, tree):
    """Voxels are the occupied cells, and hold all points."""
    grid_size = options.grid_size
    count = np.diff(tree.voxel_first)
    assert (count[tree.first_child < 0] == 0).all()
    bits = grid_size.bit_length() - 1
    for level in np.unique(tree.level[tree.first_child >= 0]):
        nodes = np.flatnonzero((tree.level == level) & (tree.first_child >= 0))
        owner = np.repeat(nodes, tree.points[nodes])
        steps = np.arange(len(owner)) - np.repeat(
            np.cumsum(tree.points[nodes]) - tree.points[nodes], tree.points[nodes]
        )
        at = tree.first[owner] + steps
        below = BITS - int(level) - bits
        q = places[at].astype(np.int64)
        cells = (q >> below if below >= 0 else q << -below) & (grid_size - 1)
        code = np.zeros(len(cells), np.int64)
        for bit in range(bits):
            for axis in range(3):
                code |= (cells[:, axis] >> bit & 1) << (3 * bit + 2 - axis)
        keys, where, mass = np.unique(
            owner << 3 * bits | code, return_inverse=True, return_counts=True
        )
        mine = np.concatenate(
            [np.arange(tree.voxel_first[k], tree.voxel_first[k + 1]) for k in nodes]
        )
        np.testing.assert_array_equal(np.bincount(owner)[nodes], tree.points[nodes])
        np.testing.assert_array_equal(np.repeat(nodes, count[nodes]), keys >> 3 * bits)
        np.testing.assert_array_equal(tree.code[mine], keys & ((1 << 3 * bits) - 1))
        np.testing.assert_array_equal(tree.mass[mine], mass)
        position = tree.order[at]
        chosen = tree.representative[mine]
        voxel = np.full(len(tree.order), -1)
        voxel[position] = where
        np.testing.assert_array_equal(voxel[chosen], np.arange(len(mine)))
        if options.strategy != "random":
            lowest = np.full(len(mine), len(tree.order))
            np.minimum.at(lowest, where, position)
            np.testing.assert_array_equal(chosen, lowest)
        expected = colour[chosen]
        if options.strategy == "average":
            sums = [np.bincount(where, colour[position, c]) for c in range(CHANNELS)]
            expected = np.column_stack(sums) // mass[:, None]
            if nodes[0] == 0:
                np.testing.assert_array_equal(tree.sums, np.column_stack(sums))
        if options.strategy != "weighted":
            np.testing.assert_array_equal(tree.colour[mine], expected)
