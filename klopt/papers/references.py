"""The papers that klopt cites, in the fields of BibTeX.

A field that could not be checked is left out rather than guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["REFERENCES"]


def _article(
    author: str, title: str, journal: str, year: int, volume: str = "", pages: str = ""
) -> tuple[str, dict[str, str]]:
    fields = {
        "author": author,
        "title": title,
        "journal": journal,
        "volume": volume,
        "pages": pages,
        "year": str(year),
    }
    return "article", {name: text for name, text in fields.items() if text}


def _proceedings(
    author: str, title: str, book: str, year: int, pages: str = ""
) -> tuple[str, dict[str, str]]:
    fields = {
        "author": author,
        "title": title,
        "booktitle": book,
        "pages": pages,
        "year": str(year),
    }
    return "inproceedings", {name: text for name, text in fields.items() if text}


JMLR = "Journal of Machine Learning Research"

REFERENCES: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "pan2016": _article(
            "Pan, Binbin and Chen, Wen-Sheng and Chen, Bo and Xu, Chen",
            "Efficient learning of supervised kernels with a graph-based loss function",
            "Information Sciences",
            2016,
        ),
        "kundu2010": _proceedings(
            "Kundu, Achintya and Tankasali, Vikram and Bhattacharyya, Chiranjib and Ben-Tal, Aharon",
            "Efficient algorithms for learning kernels from multiple similarity matrices with general convex loss "
            "functions",
            "Advances in Neural Information Processing Systems 23",
            2010,
        ),
        "xie2017": _proceedings(
            "Xie, Ying and Ding, Chris H. Q. and Gong, Yihong and Wu, Zongze",
            "Rank Ordering Constraints Elimination with Application for Kernel Learning",
            "Proceedings of the AAAI Conference on Artificial Intelligence",
            2017,
            "2775--2781",
        ),
        "liu2020": _article(
            "Liu, Fanghui and Huang, Xiaolin and Gong, Chen and Yang, Jie and Li, Li",
            "Learning Data-adaptive Non-parametric Kernels",
            JMLR,
            2020,
            "21",
            "1--39",
        ),
        "mao2010": _proceedings(
            "Mao, Qi and Tsang, Ivor W.",
            "Parameter-Free Spectral Kernel Learning",
            "Proceedings of the Conference on Uncertainty in Artificial Intelligence",
            2010,
            "350--357",
        ),
        "cortes1995": _article(
            "Cortes, Corinna and Vapnik, Vladimir",
            "Support-Vector Networks",
            "Machine Learning",
            1995,
            "20",
            "273--297",
        ),
        "drucker1997": _proceedings(
            "Drucker, Harris and Burges, Christopher J. C. and Kaufman, Linda and Smola, Alex and Vapnik, Vladimir",
            "Support Vector Regression Machines",
            "Advances in Neural Information Processing Systems 9",
            1997,
            "155--161",
        ),
        "scholkopf2000": _article(
            'Sch{\\"o}lkopf, Bernhard and Smola, Alex J. and Williamson, Robert C. and Bartlett, Peter L.',
            "New Support Vector Algorithms",
            "Neural Computation",
            2000,
            "12",
            "1207--1245",
        ),
        "kulis2009": _article(
            "Kulis, Brian and Sustik, M{\\'a}ty{\\'a}s A. and Dhillon, Inderjit S.",
            "Low-rank kernel learning with Bregman matrix divergences",
            JMLR,
            2009,
            "10",
            "341--376",
        ),
        "luss2009": _article(
            "Luss, Ronny and d'Aspremont, Alexandre",
            "Support vector machine classification with indefinite kernels",
            "Mathematical Programming Computation",
            2009,
            "1",
            "97--118",
        ),
        "eckstein1992": _article(
            "Eckstein, Jonathan and Bertsekas, Dimitri P.",
            "On the Douglas-Rachford splitting method and the proximal point algorithm for maximal monotone operators",
            "Mathematical Programming",
            1992,
            "55",
            "293--318",
        ),
        "lemarechal1995": _article(
            "Lemar{\\'e}chal, Claude and Nemirovskii, Arkadii and Nesterov, Yurii",
            "New variants of bundle methods",
            "Mathematical Programming",
            1995,
            "69",
            "111--147",
        ),
        "mehrotra1992": _article(
            "Mehrotra, Sanjay",
            "On the implementation of a primal-dual interior point method",
            "SIAM Journal on Optimization",
            1992,
            "2",
            "575--601",
        ),
        "huangfu2018": _article(
            "Huangfu, Qi and Hall, J. A. Julian",
            "Parallelizing the dual revised simplex method",
            "Mathematical Programming Computation",
            2018,
            "10",
            "119--142",
        ),
        "odonoghue2016": _article(
            "O'Donoghue, Brendan and Chu, Eric and Parikh, Neal and Boyd, Stephen",
            "Conic Optimization via Operator Splitting and Homogeneous Self-Dual Embedding",
            "Journal of Optimization Theory and Applications",
            2016,
            "169",
            "1042--1068",
        ),
        "odonoghue2021": _article(
            "O'Donoghue, Brendan",
            "Operator Splitting for a Homogeneous Embedding of the Linear Complementarity Problem",
            "SIAM Journal on Optimization",
            2021,
            "31",
            "1999--2023",
        ),
        "domahidi2013": _proceedings(
            "Domahidi, Alexander and Chu, Eric and Boyd, Stephen",
            "ECOS: An SOCP solver for embedded systems",
            "European Control Conference",
            2013,
            "3071--3076",
        ),
        "goulart2024": (
            "misc",
            {
                "author": "Goulart, Paul J. and Chen, Yuwen",
                "title": "Clarabel: An interior-point solver for conic programs with quadratic objectives",
                "year": "2024",
                "eprint": "2405.12762",
                "archivePrefix": "arXiv",
                "primaryClass": "math.OC",
            },
        ),
        "diamond2016": _article(
            "Diamond, Steven and Boyd, Stephen",
            "CVXPY: A Python-embedded modeling language for convex optimization",
            JMLR,
            2016,
            "17",
            "1--5",
        ),
        "agrawal2018": _article(
            "Agrawal, Akshay and Verschueren, Robin and Diamond, Steven and Boyd, Stephen",
            "A rewriting system for convex optimization problems",
            "Journal of Control and Decision",
            2018,
            "5",
            "42--60",
        ),
        "chang2011": _article(
            "Chang, Chih-Chung and Lin, Chih-Jen",
            "LIBSVM: A library for support vector machines",
            "ACM Transactions on Intelligent Systems and Technology",
            2011,
            "2",
            "27:1--27:27",
        ),
        "pedregosa2011": _article(
            "Pedregosa, F. and Varoquaux, G. and Gramfort, A. and Michel, V. and Thirion, B. and Grisel, O. and "
            "Blondel, M. and Prettenhofer, P. and Weiss, R. and Dubourg, V. and Vanderplas, J. and Passos, A. and "
            "Cournapeau, D. and Brucher, M. and Perrot, M. and Duchesnay, E.",
            "Scikit-learn: Machine Learning in Python",
            JMLR,
            2011,
            "12",
            "2825--2830",
        ),
        "beck2003": _article(
            "Beck, Amir and Teboulle, Marc",
            "Mirror descent and nonlinear projected subgradient methods for convex optimization",
            "Operations Research Letters",
            2003,
            "31",
            "167--175",
        ),
        "nemirovski2004": _article(
            "Nemirovski, Arkadi",
            "Prox-Method with Rate of Convergence {O}(1/t) for Variational Inequalities with {L}ipschitz Continuous "
            "Monotone Operators and Smooth Convex-Concave Saddle Point Problems",
            "SIAM Journal on Optimization",
            2004,
            "15",
            "229--251",
        ),
        "nesterov2005": _article(
            "Nesterov, Yurii",
            "Smooth minimization of non-smooth functions",
            "Mathematical Programming",
            2005,
            "103",
            "127--152",
        ),
        "dolan2002": _article(
            "Dolan, Elizabeth D. and Mor{\\'e}, Jorge J.",
            "Benchmarking optimization software with performance profiles",
            "Mathematical Programming",
            2002,
            "91",
            "201--213",
        ),
        "harris2020": _article(
            "Harris, Charles R. and Millman, K. Jarrod and van der Walt, St{\\'e}fan J. and others",
            "Array programming with {NumPy}",
            "Nature",
            2020,
            "585",
            "357--362",
        ),
        "virtanen2020": _article(
            "Virtanen, Pauli and Gommers, Ralf and Oliphant, Travis E. and others",
            "{SciPy} 1.0: fundamental algorithms for scientific computing in {P}ython",
            "Nature Methods",
            2020,
            "17",
            "261--272",
        ),
    }
)
