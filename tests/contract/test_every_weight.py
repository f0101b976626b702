"""The contract's tests of weights of single records, for every synthesis method of Sfumato."""

from sfumato.engine.contract.weights import *  # noqa: F403
