"""Face naming: the names in a caption are the candidates of every face in its picture.

python examples/face_naming.py           # generate, resolve, print the accuracy
python examples/face_naming.py FOLDER    # also write the data, for the command line
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll.apps.tables import disambiguate

PEOPLE = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gita", "Hugo", "Ines", "Jon", "Kaya", "Leo"]
N_DIMENSIONS = 64
#: Length of the noise in an embedding, where two people are about 1.4 apart.
SPREAD = 2.6
#: Share of captions that name somebody who is not in the picture.
ABSENT = 0.4


def generate(n_pictures=450, seed=0):
    """Return faces with the names of their caption, their embeddings and the hidden truth."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((len(PEOPLE), N_DIMENSIONS))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows, truth = [], []
    for picture in range(n_pictures):
        present = rng.choice(len(PEOPLE), rng.integers(1, 4), replace=False)
        named = set(present.tolist())
        if rng.random() < ABSENT:
            named.add(int(rng.integers(len(PEOPLE))))
        caption = "|".join(sorted(PEOPLE[person] for person in named))
        for place, person in enumerate(present):
            rows.append((f"p{picture}-{place}", f"p{picture}-{place}.jpg", caption))
            truth.append(person)
    faces = pd.DataFrame(rows, columns=["id", "image", "names"])
    noise = rng.standard_normal((len(truth), N_DIMENSIONS)) * SPREAD / np.sqrt(N_DIMENSIONS)
    embeddings = (centres[truth] + noise).astype(np.float32)
    return faces, embeddings, np.array(PEOPLE)[truth]


def write_data(folder):
    """Write the files that the command line takes."""
    faces, embeddings, _ = generate()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    faces.to_csv(folder / "faces.csv", index=False)
    np.save(folder / "embeddings.npy", embeddings)


def main(folder=None):
    """Resolve the scene and print how much of the hidden truth was found."""
    faces, embeddings, truth = generate()
    if folder:
        write_data(folder)
    with_vectors = faces.assign(embedding=list(embeddings))
    resolved = disambiguate(with_vectors)
    accuracy = float((resolved["label"] == truth).mean())
    print(f"any name of the caption: {np.mean(1 / faces['names'].str.split('|').str.len()):.3f}")
    print(f"gmpll:                   {accuracy:.3f} of {len(faces)} faces")
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
