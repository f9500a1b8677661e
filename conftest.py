"""Which modules can be imported for their examples: those whose optional library is installed."""

from importlib.util import find_spec

#: Modules that need a library when they are imported.
NEEDS = {
    "triton": ["src/gmpll/matching/_triton.py", "src/gmpll/engines/triton_products.py"],
    "torch": [
        "src/gmpll/engines/torch.py",
        "src/gmpll/engines/halves.py",
        "src/gmpll/matching/full_tensors.py",
        "src/gmpll/deep",
    ],
    "dask": ["src/gmpll/engines/dask.py", "src/gmpll/engines/dask_inputs.py"],
    "numba": [
        "src/gmpll/engines/cells.py",
        "src/gmpll/graph/_compiled.py",
        "src/gmpll/_compiling.py",
    ],
}
collect_ignore = [
    path for name, paths in NEEDS.items() if find_spec(name) is None for path in paths
]
