"""Bird song: the species heard in a recording are the candidates of every syllable in it.

python examples/bird_song.py           # generate, resolve, print the accuracy
python examples/bird_song.py FOLDER    # also write the data, for the command line
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from gmpll.apps.tables import disambiguate

#: Start and end of the sweep in kHz, length in seconds, trill in Hz (0 is a pure whistle).
SPECIES = {
    "blackbird": (2.2, 2.6, 0.25, 0),
    "chaffinch": (4.5, 2.8, 0.12, 0),
    "great tit": (5.0, 4.2, 0.10, 0),
    "robin": (3.2, 5.8, 0.30, 12),
    "wren": (6.0, 5.2, 0.22, 40),
    "cuckoo": (0.75, 0.60, 0.35, 0),
    "goldcrest": (7.2, 7.8, 0.12, 18),
}
RATE = 22_050
#: Loudness of the noise relative to the song.
NOISE = 3.0


def syllable(species, rng):
    """Sing one syllable, with the freedom that birds take."""
    start, end, length, trill = SPECIES[species]
    time = np.arange(0, length * rng.normal(1, 0.12), 1 / RATE)
    sweep = np.linspace(start, end, time.size) * rng.normal(1, 0.12) * 1000
    song = np.sin(2 * np.pi * np.cumsum(sweep) / RATE)
    if trill:
        song *= 0.5 + 0.5 * np.sin(2 * np.pi * trill * rng.normal(1, 0.1) * time)
    return song + NOISE * rng.standard_normal(time.size)


def acoustic_features(sound):
    """Describe a syllable: strongest frequency of its three thirds, its width, its length."""
    peaks = []
    for part in np.array_split(sound, 3):
        power = np.abs(np.fft.rfft(part * np.hanning(part.size), 4096)) ** 2
        peaks.append(np.argmax(power) * RATE / 4096 / 1000)
    power = np.abs(np.fft.rfft(sound, 16384)) ** 2
    centre = np.arange(power.size) @ power / power.sum()
    width = np.sqrt((np.arange(power.size) - centre) ** 2 @ power / power.sum())
    loudness = np.abs(sound[: sound.size // 32 * 32]).reshape(32, -1).mean(axis=1)
    wobble = np.abs(np.diff(loudness)).mean() / loudness.mean()
    return (*peaks, width * RATE / 16384 / 1000, wobble, sound.size / RATE)


def generate(n_recordings=180, seed=0):
    """Return syllables with the species of their recording as columns of 0 and 1."""
    rng = np.random.default_rng(seed)
    names = list(SPECIES)
    rows, truth = [], []
    for recording in range(n_recordings):
        heard = rng.choice(names, rng.integers(1, 5), replace=False)
        flags = [int(name in heard) for name in names]
        for number in range(rng.integers(3, 7)):
            species = str(rng.choice(heard))
            sound = acoustic_features(syllable(species, rng))
            rows.append((f"r{recording}.{number}", *sound, *flags))
            truth.append(species)
    features = ["peak_1", "peak_2", "peak_3", "width", "wobble", "length"]
    columns = ["id", *features, *(f"species={name}" for name in names)]
    return pd.DataFrame(rows, columns=columns), np.array(truth)


def write_data(folder):
    """Write the files that the command line takes."""
    syllables, _ = generate()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    syllables.to_csv(folder / "syllables.csv", index=False)


def main(folder=None):
    """Resolve the scene and print how much of the hidden truth was found."""
    syllables, truth = generate()
    if folder:
        write_data(folder)
    resolved = disambiguate(syllables)
    accuracy = float((resolved["label"] == truth).mean())
    heard = syllables.filter(like="species=").sum(axis=1)
    print(f"any species of the recording: {np.mean(1 / heard):.3f}")
    print(f"gmpll:                        {accuracy:.3f} of {len(syllables)} syllables")
    return accuracy


if __name__ == "__main__":
    main(*sys.argv[1:2])
