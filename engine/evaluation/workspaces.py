"""Held-out packages as workspaces: what an engine knows of a package whose file is being edited."""

from collections.abc import Sequence

import numpy as np

from engine.corpus.languages import File
from engine.corpus.packages import packages
from engine.errors import ModelError
from engine.fill.interface import Model
from engine.library.resolve import folder_of
from engine.memory.mixing_network import MixingNetwork
from engine.memory.workspace import EngineMemories
from engine.models.embedded.model import EmbeddedModel

_MOST_BYTES = 1 << 30


class Workspaces:
    """Packages that are learned when a file of them is first asked for. A fill ignores what is learned of its own file.

    memories: for a scheduler.
    """

    def __init__(self, model: EmbeddedModel, mixing: MixingNetwork, files: Sequence[File]) -> None:
        self.model = model
        self.memories = EngineMemories(model, model.tokenizer, mixing, _MOST_BYTES)
        self._package_of = {file.path: package for package in packages(files) for file in package}
        self._learned: set[str] = set()

    @classmethod
    def of(cls, model: Model, name: str, files: Sequence[File]) -> "Workspaces":
        """Return the workspaces for a model, which was loaded by `name`. Raises ModelError if it uses no memory."""
        if not isinstance(model, EmbeddedModel):
            raise ModelError(f"{model.info.name} uses no memory; name the embedded model or a folder with one")
        return cls(model, MixingNetwork.of_model(folder_of(name)), files)

    def name_of(self, path: str) -> str:
        """Learn the package of a file, and return its name as a workspace; "" for a file without a package."""
        package = self._package_of.get(path)
        if package is None:
            return ""
        name = package[0].path
        if name not in self._learned:
            self._learned.add(name)
            for file in package:
                tokens = np.array(self.memories.tokenize(file.text), np.int32)
                self.memories.learn(name, file.path, tokens)
        return name
