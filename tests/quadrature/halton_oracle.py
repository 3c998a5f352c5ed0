"""The two-dimensional example of QUAD section 8, solved by a small active-set method of its own."""

from functools import cache

import numpy as np
from scipy.stats import qmc

from mercer import Gaussian, GramOperator
from mercer.problems import Discrepancy

KERNEL = Gaussian(sigma=0.4)  # exp(-‖x - y‖²/0.16)
SIZE = 2016
WEIGHTS = np.full(SIZE, 1 / SIZE)
TOTAL = 0.81


@cache
def points():
    """Halton points in bases 2 and 3 without the origin, on the square [-1, 1]²."""
    return 2 * qmc.Halton(2, scramble=False).random(SIZE + 1)[1:] - 1


@cache
def problem():
    return Discrepancy(GramOperator(KERNEL**2, points()), WEIGHTS, np.ones(SIZE))


@cache
def solution():
    """Nodes and values that minimise ½ vᵀSv - (Sω)ᵀv over v ≥ 0, Σv = 0.81 (Lawson and Hanson, with one constraint)."""
    S = KERNEL(points()) ** 2
    b = S @ WEIGHTS
    nodes, values = np.array([int(np.argmax(b))]), np.array([TOTAL])
    while True:
        target, alpha = _equality_solution(S, b, nodes)
        while np.any(target <= 0):
            falling = target <= 0
            step = np.min(values[falling] / (values[falling] - target[falling]))
            values = values + step * (target - values)
            kept = values > 1e-13
            nodes, values = nodes[kept], values[kept]
            target, alpha = _equality_solution(S, b, nodes)
        gradient = S[:, nodes] @ target - b + alpha
        entering = int(np.argmin(gradient))
        if gradient[entering] > -1e-15:
            order = np.argsort(nodes)
            return nodes[order], target[order]
        nodes, values = np.append(nodes, entering), np.append(target, 0.0)


def _equality_solution(S, b, nodes):
    n = nodes.size
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = S[np.ix_(nodes, nodes)]
    system[n, n] = 0.0
    answer = np.linalg.solve(system, np.append(b[nodes], TOTAL))
    return answer[:n], answer[n]
