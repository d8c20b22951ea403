"""What became of the planar nodes of a search, and the peaks of their votes.

They are the columns of `plane_nodes` and `plane_peaks`.
"""

from typing import Any

import numpy as np

from . import NODE_STATES
from .accumulator import Ball
from .groups import EXPLAINED
from .octree import Cube, PlanarNodes, faces_down

STATE = {name: np.int8(code) for code, name in enumerate(NODE_STATES)}


class Explanation:
    """Collects the nodes that a search is done with, and its peaks, if they are wanted.

    Parameters
    ----------
    size : int
        Points of the cloud.
    """

    def __init__(self, size: int, *, wanted: bool) -> None:
        self.size, self.wanted = size, wanted
        self.rows: list[Any] = []
        self.rounds: list[Any] = []

    def keep(self, nodes: PlanarNodes, kept: Any, state: str) -> PlanarNodes:
        """Give the nodes that are kept; note the state of the others."""
        if self.wanted:
            others = nodes.join(~kept)
            self._add(others, np.full(len(others), STATE[state]), np.zeros(len(others), np.int64))
        return nodes.join(kept)

    def leave(self, nodes: PlanarNodes, owner: Any) -> None:
        """Note the nodes that belong to no plane; others search for planes in their points."""
        if self.wanted:
            left = owner < 0
            states = np.where(owner[left] == EXPLAINED, STATE["explained"], STATE["free"])
            self._add(nodes.join(left), states, np.zeros(states.size, np.int64))

    def settle(self, nodes: PlanarNodes, owner: Any, plane_id: Any) -> None:
        """Note the nodes at the end; `plane_id`, int64[nodes], is 0 where a plane was dropped."""
        self.leave(nodes, owner)
        if self.wanted:
            mine = owner >= 0
            states = np.where(plane_id[mine] > 0, STATE["plane"], STATE["small"])
            self._add(nodes.join(mine), states, plane_id[mine])

    def _add(self, nodes: PlanarNodes, states: Any, plane_id: Any) -> None:
        self.rows.append((
            nodes.level, nodes.code, nodes.count, nodes.mean, nodes.values[:, 0],
            nodes.vectors[:, 0], nodes.weights(self.size), states, plane_id,
        ))  # fmt: skip

    def vote(self, around: Ball, at: Any, rho: Any, votes: Any, node_count: Any) -> None:
        """Note the peaks of a round of votes, in the order in which they are tried.

        Parameters
        ----------
        around : Ball
        at : int64[peaks]
            Their directions in the ball.
        rho : float64[peaks]
            In half sides of the root.
        votes : float64[peaks]
            Mean of a cell and its neighbours, see `votes.smooth`; a node's vote is at most its
            weight, but not with the paper's kernel.
        node_count : int64[peaks]
            Nodes near the peak, see `groups.count_near`.
        """
        numbers = np.full(at.size, len(self.rounds) + 1)
        columns = numbers, around.theta[at], around.phi[at], rho, votes, node_count
        self.rounds.append(columns)

    def peaks(self, cube: Cube) -> dict[str, Any] | None:
        """Describe all peaks, with angles in degrees and rho in the unit of the cloud.

        None if they are not wanted.
        """
        if not self.wanted:
            return None
        rounds = self.rounds or [6 * [np.empty(0)]]
        number, theta, phi, rho, votes, node_count = map(np.concatenate, zip(*rounds, strict=True))
        return {
            "round": number.astype(np.int64),
            "theta": np.degrees(theta),
            "phi": np.degrees(phi),
            "rho": rho * cube.half,
            "votes": votes,
            "node_count": node_count.astype(np.int64),
        }

    def columns(self, cube: Cube) -> dict[str, Any] | None:
        """Describe all nodes in the coordinates of the cloud, wide ones first, in Morton order.

        None if they are not wanted.
        """
        if not self.wanted:
            return None
        nothing, places = np.empty(0), np.empty((0, 3))
        rows = self.rows or [(*3 * [nothing], places, nothing, places, *3 * [nothing])]
        columns = [np.concatenate(values) for values in zip(*rows, strict=True)]
        order = np.lexsort((columns[1], columns[0]))
        level, _, count, mean, variance, normal, votes, state, plane_id = (
            values[order] for values in columns
        )
        places = np.array(cube.low) + (mean + 1.0) * cube.half
        normal[faces_down(normal)] *= -1
        normal += 0.0  # no -0
        return {
            "level": level.astype(np.int64),
            **dict(zip(("cx", "cy", "cz"), np.ascontiguousarray(places.T), strict=True)),
            "size": cube.side * 2.0**-level,
            "point_count": count.astype(np.int64),
            **dict(zip(("nx", "ny", "nz"), np.ascontiguousarray(normal.T), strict=True)),
            "thickness": np.sqrt(np.maximum(variance, 0.0)) * cube.half,
            "votes": votes,
            "plane_id": plane_id.astype(np.int64),
            "state": state.astype(np.int8),
        }
