import numpy as np
import pytest

from gmpll.datasets import dataset_info, is_available, load_dataset, load_embedded


@pytest.mark.parametrize("name", ["digits", "iris", "wine"])
def test_embedded_sets_need_no_folder(name, tmp_path):
    info = dataset_info(name)
    assert is_available(name, tmp_path)
    bunch = load_dataset(name, tmp_path)
    assert bunch.data.shape == (info.n_samples, info.n_features)
    assert bunch.data.dtype == np.float64
    assert len(bunch.target_names) == info.n_classes == len(np.unique(bunch.target))
    assert len(bunch.feature_names) == info.n_features
    assert bunch.candidates is None
    assert info.source in bunch.DESCR


def test_other_sets_are_not_embedded():
    with pytest.raises(ValueError, match=r"no embedded set 'lost'; choose one of: digits, iris"):
        load_embedded("lost")
