import pytest

pytest.importorskip("numba")

from gmpll import _compiling


def test_functions_compile_where_nothing_can_be_kept(monkeypatch):
    asked = []

    def without_a_folder(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    njit = _compiling.njit
    monkeypatch.setattr(_compiling, "njit", without_a_folder)

    @_compiling.compiled
    def double(x):
        return 2 * x

    assert double(3) == 6
    assert [bool(options.get("cache")) for options in asked] == [True, False]
    assert all(options["nogil"] for options in asked)
