import math

from gmpll.apps.pages.tables import count, difference, figure, number


def test_figures_as_people_read_them():
    assert (number(0.73712), number(math.nan)) == ("0.737", "\N{EN DASH}")
    assert (figure(0.7371, 0.0432), figure(0.5, math.nan)) == ("0.737 ± 0.043", "0.500")
    assert (difference(0.0214), difference(0.0001)) == ("+0.021", "0.000")
    assert difference(-0.3) == "\N{MINUS SIGN}0.300"
    assert count(1234567) == "1\N{THIN SPACE}234\N{THIN SPACE}567"
