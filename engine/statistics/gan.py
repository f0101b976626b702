"""A conditional tabular GAN on plain numbers: Xu, Skoularidou, Cuesta-Infante & Veeramachaneni (2019), by the library ctgan.

The library draws from the global generators of NumPy and torch and spreads over all cores. Here it works from a seed, on one
thread, leaves both generators as it found them, and never runs twice at a time in a process. It belongs to the extra [gan].
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Gan", "train"]

Floats = NDArray[np.float64]

ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True, eq=False)
class Gan:
    """A trained generator, and the losses that generator and discriminator ended with."""

    model: Any
    generator_loss: float
    discriminator_loss: float

    def sample(self, n: int, seed: int) -> Floats:
        """Generated records (n, columns): the codes of discrete columns are among those seen, others are any numbers."""
        with _alone():
            self.model.set_random_state(seed)
            return np.asarray(self.model.sample(n), dtype=np.float64)


def train(values: Floats, discrete: NDArray[np.bool_], epochs: int, seed: int) -> Gan:
    """A GAN trained on ``values`` (n, columns), n >= 2; ``discrete`` (columns,) marks codes of levels.

    ``epochs`` passes over the records in batches of 500. Raises ModuleNotFoundError without the extra.
    """
    with _alone():
        from ctgan import CTGAN

        model = CTGAN(epochs=epochs, enable_gpu=False)
        model.set_random_state(seed)
        model.fit(values, [int(column) for column in np.flatnonzero(discrete)])
        losses = model.loss_values.iloc[-1]
    return Gan(model, float(losses["Generator Loss"]), float(losses["Discriminator Loss"]))


@contextmanager
def _alone() -> Iterator[None]:
    """One thread, one caller, and none of the library's warnings about its own dependencies."""
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import joblib
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            with joblib.parallel_config(backend="sequential"):
                yield
        finally:
            torch.set_num_threads(threads)
