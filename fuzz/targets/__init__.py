"""All fuzz targets by name."""

from fuzz.target import Target
from fuzz.targets import data_sets, models, requests, reviews, runs, tables, vectors

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (data_sets, tables, vectors, models, requests, reviews, runs)
    for target in module.TARGETS
}
