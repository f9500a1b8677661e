"""What the property tests share: how many examples, generated inputs, what counts as an error.

``HYPOTHESIS_PROFILE=thorough`` draws fresh examples, and many more of them.

Which exceptions are documented, by module:

===========================  =====================================================================
gmpll (methods, candidates)  ValueError, also for wrong parameters; TypeError where scikit-learn's
                             conventions ask for it (an object that is no array);
                             NotFittedError before ``fit``
gmpll.metrics                ValueError
gmpll.datasets               ValueError (DatasetFormatError is one), TypeError for a wrong kind of
                             argument; DatasetUnavailableError, a FileNotFoundError
gmpll.matching, gmpll.graph  ValueError
gmpll.apps.tables         InputError, a ValueError
gmpll.apps.experiments            ExperimentError, a ValueError
gmpll.apps.review                 ReviewError
===========================  =====================================================================
"""

import os

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from problems import random_problem

THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
#: A message of more characters or lines is no sentence.
LONGEST_MESSAGE = 1000


def examples(n, *, thorough=20):
    """Run a test on n examples, or on ``thorough`` times as many."""
    return settings(
        max_examples=n * thorough if THOROUGH else n,
        derandomize=not THOROUGH,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def refused(call, documented=(ValueError, TypeError)):
    """Return None and what a call returns, or its documented error and None."""
    try:
        return None, call()
    except documented as error:
        text = str(error)
        assert text.strip(), "the error says nothing"
        assert len(text) <= LONGEST_MESSAGE, text
        return error, None


#: Labels of one kind, also awkward ones: text that NumPy shortens, zeros of both signs, booleans.
label_kinds = st.sampled_from(
    [
        st.integers(-(2**40), 2**40),
        st.text(max_size=5),
        st.sampled_from(["a", "a\0", "\0", "", " ", "nan", "é", "1"]),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
        st.booleans(),
        st.tuples(st.integers(0, 3), st.integers(0, 3)),
    ]
)
plain_labels = st.one_of(
    st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-99, 99), min_size=1, max_size=6, unique=True),
)
#: Anything that might be handed over by mistake.
anything = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=4),
        st.binary(max_size=4),
        hnp.arrays(
            st.sampled_from([np.bool_, np.int8, np.float32, np.float64, "U2", object, "M8[s]"]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
    ),
    lambda children: st.one_of(
        st.lists(children, max_size=4),
        st.dictionaries(st.text(max_size=2), children, max_size=3),
        st.tuples(children),
    ),
    max_leaves=8,
)


@st.composite
def masks(draw, max_rows=8, max_labels=6):
    """Candidate matrices without empty rows."""
    m, q = draw(st.integers(1, max_rows)), draw(st.integers(1, max_labels))
    mask = draw(hnp.arrays(bool, (m, q)))
    always = draw(hnp.arrays(np.intp, m, elements=st.integers(0, q - 1)))
    mask[np.arange(m), always] = True
    return mask


@st.composite
def generic_problems(draw, max_rows=16):
    """Problems in general position: no ties between rows, every label occurs."""
    seed = draw(st.integers(0, 2**31 - 1))
    m, d, q = draw(st.integers(8, max_rows)), draw(st.integers(2, 4)), draw(st.integers(2, 4))
    X, mask, _ = random_problem(seed, m=m, d=d, q=q)
    rng = np.random.RandomState(seed)
    for column in np.flatnonzero(~mask.any(axis=0)):
        mask[rng.randint(m), column] = True
    return X, mask, X[:4] + 0.3 * rng.standard_normal((4, d))


@st.composite
def awkward_features(draw, m):
    """Finite features of any size, with equal rows and constant columns."""
    d = draw(st.integers(1, 4))
    size = draw(st.sampled_from([1.0, 1e-300, 1e-5, 1e12, 1e300]))
    element = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5))
    return size * draw(hnp.arrays(np.float64, (m, d), elements=element))
