# The public names of klopt, listed once: type checkers read them here, and so does `klopt/__init__.py`.

from . import learners as learners, problems as problems
from .bench.comparison import Comparison as Comparison, compare as compare
from .certificates.files import check as check
from .conformance.checks import Check as Check, Status as Status
from .conformance.suite import check_backend as check_backend, check_problem as check_problem
from .engine.cvxpy_solver import CVXPY as CVXPY
from .engine.pipeline import solve as solve
from .engine.planner import Plan as Plan, Refusal as Refusal, Route as Route, plan as plan
from .engine.registry import backends as backends, register as register
from .engine.result import Result as Result
from .errors import (
    InvalidProblem as InvalidProblem,
    InvalidSettings as InvalidSettings,
    KloptError as KloptError,
    NoRoute as NoRoute,
    NotCertified as NotCertified,
    UncertifiedFit as UncertifiedFit,
)
from .judging.entry import judge as judge
from .kernels.gram import Gram as Gram
from .model.backend import (
    Answer as Answer,
    Backend as Backend,
    Settings as Settings,
    Step as Step,
    Stop as Stop,
)
from .model.cones import Cones as Cones
from .model.features import Feature as Feature
from .model.forms import (
    ConeForm as ConeForm,
    ExplicitForm as ExplicitForm,
    SaddleForm as SaddleForm,
    SimplexForm as SimplexForm,
    Start as Start,
)
from .model.functions import (
    KernelQuadratic as KernelQuadratic,
    Linear as Linear,
    Oracle as Oracle,
    Quadratic as Quadratic,
)
from .model.problem import (
    Bracket as Bracket,
    Formulation as Formulation,
    Point as Point,
    Problem as Problem,
)
from .model.sets import (
    BoxPlane as BoxPlane,
    OrderedSimplex as OrderedSimplex,
    Product as Product,
    Simplex as Simplex,
    Spectrahedron as Spectrahedron,
)
from .papers.theorems.claim import theorem as theorem
from .papers.theorems.verification import verify as verify
from .proof.certificate import Certificate as Certificate, Verdict as Verdict
from .worst_cases.entry import WorstCase as WorstCase, worst_case as worst_case

__version__: str
