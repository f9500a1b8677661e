"""Object regions: the tags of a picture are the candidates of every region in it.

python examples/object_regions.py           # generate, resolve, print the accuracy
python examples/object_regions.py FOLDER    # also write the data, for the command line
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll.apps.tables import disambiguate

#: Typical hue, brightness, height in the picture (0 is the top) and size of a region.
OBJECTS = {
    "sky": (0.58, 0.85, 0.15, 0.35),
    "grass": (0.30, 0.50, 0.85, 0.30),
    "water": (0.55, 0.55, 0.75, 0.30),
    "tree": (0.33, 0.30, 0.45, 0.20),
    "road": (0.10, 0.45, 0.90, 0.20),
    "car": (0.02, 0.50, 0.75, 0.08),
    "cow": (0.07, 0.35, 0.70, 0.08),
    "person": (0.05, 0.60, 0.60, 0.06),
}
SPREAD = (0.05, 0.12, 0.12, 0.06)
N_TEXTURES = 12


def generate(n_pictures=260, seed=0):
    """Return regions with the tags of their picture, and the hidden truth."""
    rng = np.random.default_rng(seed)
    names = list(OBJECTS)
    textures = rng.standard_normal((len(names), N_TEXTURES))
    rows, truth = [], []
    for picture in range(n_pictures):
        present = rng.choice(len(names), rng.integers(2, 6), replace=False)
        tags = sorted(names[kind] for kind in present)
        for region, kind in enumerate(present):
            look = rng.normal(OBJECTS[names[kind]], SPREAD)
            texture = textures[kind] + rng.standard_normal(N_TEXTURES) * 1.8
            rows.append((f"{picture}/{region}", *look, texture.astype(np.float32), tags))
            truth.append(names[kind])
    columns = ["id", "hue", "brightness", "height", "size", "texture", "tags"]
    return pd.DataFrame(rows, columns=columns), np.array(truth)


def write_data(folder):
    """Write the files that the command line takes."""
    regions, _ = generate()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    regions.to_parquet(folder / "regions.parquet", index=False)


def main(folder=None):
    """Resolve the scene and print how much of the hidden truth was found."""
    regions, truth = generate()
    if folder:
        write_data(folder)
    resolved = disambiguate(regions)
    accuracy = float((resolved["label"] == truth).mean())
    print(f"any tag of the picture: {np.mean(1 / regions['tags'].str.len()):.3f}")
    print(f"gmpll:                  {accuracy:.3f} of {len(regions)} regions")
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
