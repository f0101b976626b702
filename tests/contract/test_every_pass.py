"""The contract's tests of methods that work in passes over the blocks of a table, for every method of Sfumato."""

from sfumato.engine.contract.passes import *  # noqa: F403
