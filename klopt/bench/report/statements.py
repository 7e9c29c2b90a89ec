"""What each problem states, as LaTeX for MathML, and which of its arrays weighs kernels.

The statements are those at the head of the problems' own files; tests/test_report.py fails where
one is missing. The page states no formula for a class of a user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["STATEMENTS", "Statement", "mathml"]


@dataclass(frozen=True)
class Statement:
    """The program in LaTeX, `GOAL` standing for max or min; where the notation needs it a line in words."""

    latex: str
    words: str = ""
    weights: str = ""
    """The array of a solution that says how much each kernel counts; "" where there is none."""


_ROWS = r"A_{\mathrm{ub}}x\le b_{\mathrm{ub}},\quad A_{\mathrm{eq}}x=b_{\mathrm{eq}}"
_SUBJECT = r"\quad\text{subject to}\quad "
_MACHINE = r"\quad 0\le\alpha\le C,\quad y^\top\alpha=0,\quad a_i=y_i\alpha_i"
_SEVERAL = r"\mathbf{1}^\top\alpha-\sum_i\frac{a^\top K_ia}{2\gamma_i}"

STATEMENTS: Mapping[str, Statement] = MappingProxyType(
    {
        "LP": Statement(rf"GOAL_{{x}}\; c^\top x{_SUBJECT}{_ROWS},\quad l\le x\le u"),
        "QCQP": Statement(
            r"GOAL_{x}\; \tfrac12 x^\top Px+q^\top x"
            rf"{_SUBJECT}\tfrac12 x^\top P_ix+q_i^\top x\le r_i,\quad b-Ax\in\mathcal{{K}},\quad "
            rf"{_ROWS},\quad l\le x\le u",
            "K is a product of second-order cones.",
        ),
        "SDP": Statement(
            rf"GOAL_{{x}}\; c^\top x{_SUBJECT}\sum_i x_iF_i-F_0\succeq 0,\quad {_ROWS}",
            "Or over X: <C, X> subject to <A_i, X> = b_i, X positive semidefinite, which is its dual.",
        ),
        "SimplexProgram": Statement(
            r"\min_{x}\; f(x)" + _SUBJECT + r"x\in\mathcal{X}", "f is convex, X a simple set."
        ),
        "SaddlePoint": Statement(
            r"\min_{x\in\mathcal{X}}\;\max_{y\in\mathcal{Y}}\; \varphi(x,y)",
            "The function is convex in x and concave in y; both sets are simple.",
        ),
        "SoftMargin": Statement(
            r"\max_{\alpha}\; \mathbf{1}^\top\alpha-\tfrac12\alpha^\top Q\alpha"
            rf"{_SUBJECT}0\le\alpha\le C,\quad y^\top\alpha=0,\qquad Q_{{ij}}=y_iK_{{ij}}y_j"
        ),
        "EpsilonMargin": Statement(
            r"\max_{\beta}\; y^\top\beta-\varepsilon\lVert\beta\rVert_1-\tfrac12\beta^\top K\beta"
            rf"{_SUBJECT}-C\le\beta\le C,\quad \mathbf{{1}}^\top\beta=0"
        ),
        "NuMargin": Statement(
            r"\min_{\alpha}\; \tfrac12\alpha^\top Q\alpha"
            rf"{_SUBJECT}0\le\alpha\le 1/n,\quad y^\top\alpha=0,\quad \mathbf{{1}}^\top\alpha\ge\nu,"
            r"\qquad Q_{ij}=y_iK_{ij}y_j"
        ),
        "MultipleKernel": Statement(
            r"\max_{a}\; y^\top a-\tfrac12\lVert r\rVert_s^2-\mathrm{loss}(a),\qquad r_i=\sqrt{a^\top K_ia}",
            "The hinge loss is 0 on 0 ≤ y_i a_i ≤ C, 1'a = 0 and infinite elsewhere, the squared loss a'a / (2C). "
            "s = ∞ mixes few kernels (block-l1), s = 1 leaves none out (block-linf).",
            "weights",
        ),
        "OrderedAlignment": Statement(
            r"\max_{\alpha}\; \frac{\langle K,T\rangle}{\lVert K\rVert\,\lVert T\rVert},\quad "
            r"K=\sum_i\alpha_iv_iv_i^\top"
            rf"{_SUBJECT}\alpha_i\ge\sigma\alpha_{{i+1}},\quad\alpha\ge 0",
            "Unordered variants keep only the signs.",
            "alpha",
        ),
        "ScgOrdered": Statement(
            r"\min_{\mu}\; \sum_i\mu_i\,v_i^\top Sv_i"
            rf"{_SUBJECT}\sum_i\mu_i=1,\quad\mu_i\ge\sigma\mu_{{i+1}},\quad\mu\ge 0",
            "S is the Laplacian of the supervised graph; the learned kernel is the sum of mu_i v_i v_i'.",
            "mu",
        ),
        "ScgLogDet": Statement(
            r"\min_{K}\; D(K,K_0)+\gamma\,\mathrm{tr}(KS),\qquad "
            r"D(K,K_0)=\mathrm{tr}(KK_0^{-1})-\log\det(KK_0^{-1})-n",
            "S is the Laplacian of the supervised graph.",
        ),
        "LogDetPairs": Statement(
            r"\min_{K}\; D(K,K_0)=\mathrm{tr}(KK_0^{-1})-\log\det(KK_0^{-1})-n"
            rf"{_SUBJECT}d_K(i,j)\le u\ \text{{if similar}},\quad d_K(i,j)\ge l\ \text{{if dissimilar}}",
            "d_K(i, j) = K_ii + K_jj - 2 K_ij; with slack the bounds may move at a price.",
        ),
        "SimilarityKernel": Statement(
            r"\min_{K\succeq 0}\;\max_{\alpha}\; \mathbf{1}^\top\alpha-\tfrac12 a^\top Ka"
            rf"+\rho\sum_i L(K-S_i){_SUBJECT}\mathrm{{tr}}\,K=\tau,{_MACHINE}",
            "S_i are similarities that need not be positive semidefinite; L is the l1, Frobenius or squared loss. "
            "The trace may be left free.",
        ),
        "SimilarityKernels": Statement(
            rf"\min_{{K_i\succeq 0}}\;\max_{{\alpha,\gamma}}\; {_SEVERAL}+\rho\sum_i L(K_i-S_i)"
            rf"{_SUBJECT}\mathrm{{tr}}\,K_i=\tau,{_MACHINE},\quad\gamma\ge 0,\quad\mathbf{{1}}^\top\gamma=1",
            "S_i are similarities that need not be positive semidefinite; "
            "the machine has the kernel sum K_i / gamma_i.",
            "gamma",
        ),
        "SimilaritySpectra": Statement(
            rf"\min_{{\mu_i\ge 0}}\;\max_{{\alpha,\gamma}}\; {_SEVERAL}+\rho\sum_i\lVert\mu_i-\lambda_i\rVert^2,"
            r"\quad K_i=V_i\,\mathrm{diag}(\mu_i)V_i^\top"
            rf"{_SUBJECT}\mathbf{{1}}^\top\mu_i=\tau,{_MACHINE},\quad\gamma\ge 0,\quad\mathbf{{1}}^\top\gamma=1",
            "S_i = V_i diag(lambda_i) V_i' are similarities that need not be positive semidefinite; "
            "the machine has the kernel sum K_i / gamma_i.",
            "gamma",
        ),
        "AdaptiveKernel": Statement(
            r"\max_{\alpha}\;\min_{F\succeq 0}\; \mathbf{1}^\top\alpha-\tfrac12 a^\top(F\circ K)a"
            rf"+\eta\lVert F-\mathbf{{1}}\mathbf{{1}}^\top\rVert^2+\tau\eta\,\mathrm{{tr}}\,F{_SUBJECT}"
            + _MACHINE.removeprefix(r"\quad "),
        ),
        "AdaptiveKernelRegression": Statement(
            r"\max_{\beta}\;\min_{F\succeq 0}\; "
            r"y^\top\beta-\varepsilon\lVert\beta\rVert_1-\tfrac12\beta^\top(F\circ K)\beta"
            rf"+\eta\lVert F-\mathbf{{1}}\mathbf{{1}}^\top\rVert^2+\tau\eta\,\mathrm{{tr}}\,F"
            rf"{_SUBJECT}-C\le\beta\le C,\quad\mathbf{{1}}^\top\beta=0"
        ),
        "SpectralRls": Statement(
            r"\min_{K\succeq 0}\; \tfrac12\,\mathrm{tr}\,Y^\top(K_{JJ}+I/C)^{-1}Y"
            r"+\mu\,\mathrm{tr}\,K(L+\epsilon I)",
            "K commutes with L, or is any kernel, as the basis says.",
            "spectrum",
        ),
        "SpectralAlignment": Statement(
            r"\max_{0\le t<\max r}\; \frac{\langle K,T\rangle}{\lVert K\rVert\,\lVert T\rVert},\quad "
            r"K=\sum_i[r_i-t]_+\,u_iu_i^\top,\quad r_i=\sqrt{A_i/(2B_i)}",
            "The level t chooses among the spectral kernels of regularised least squares, which form one curve.",
        ),
    }
)


def mathml(family: str, sense: str) -> str:
    """Return the statement of a class of problems as MathML, "" where there is none.

    >>> mathml("SoftMargin", "max")[:5], mathml("Unknown", "min")
    ('<math', '')
    """
    if family not in STATEMENTS:
        return ""
    from latex2mathml.converter import convert

    goal = r"\max" if sense == "max" else r"\min"
    return str(convert(STATEMENTS[family].latex.replace("GOAL", goal), display="block"))
