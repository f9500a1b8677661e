"""A new data set: an entry in the catalogue, and a file in the data folder."""

from hashlib import sha256

import scipy.io
from sklearn.datasets import make_blobs

from gmpll.datasets import DatasetInfo, catalogue, load_dataset, random_candidates


def entry(file):
    return DatasetInfo(
        "blobs", "Blobs", "real-world", n_samples=60, n_features=2, n_classes=3,
        mean_candidates=2.0, source="made up", licence="none needed", citation="nobody",
        file_name=file.name, checksum=f"sha256:{sha256(file.read_bytes()).hexdigest()}",
    )  # fmt: skip


def test_it_is_loaded(tmp_path, monkeypatch):
    X, truth = make_blobs(60, random_state=0)
    true, sets = random_candidates(truth, 0, 1), random_candidates(truth, 1, 1, random_state=0)
    file = tmp_path / "blobs.mat"
    content = {"data": X, "target": true.T * 1.0, "partial_target": sets.T * 1.0}
    scipy.io.savemat(file, content)
    monkeypatch.setitem(catalogue._ALL, "blobs", entry(file))  # yours goes into catalogue.toml
    blobs = load_dataset("blobs", tmp_path)
    assert blobs.verified
    assert (blobs.candidates == sets).all()
