"""Makes Longbird known to transformers, without importing it: that takes seconds.

Importing this module is enough. If transformers is there already, the attention implementation
and the models are registered at once; otherwise right after its import, before anyone can use it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from longbird.models.integration.tasks import TASKS

# Where there are models there is this module, and it is what knows a model by its name.
TRIGGER = "transformers.models.auto.configuration_auto"


def register() -> None:
    """Registers the attention implementation, the configurations and the models."""
    import transformers as hf

    from longbird import models
    from longbird.models.integration import attention

    attention.register()
    for config in (models.LongbirdConfig, models.LongbirdSeq2SeqConfig):
        hf.AutoConfig.register(config.model_type, config, exist_ok=True)
    for task in TASKS.values():
        for model in (task.encoder, task.seq2seq):
            if task.auto is not None and model is not None:
                ours = getattr(models, model)
                getattr(hf, task.auto).register(ours.config_class, ours, exist_ok=True)


class AfterTransformers(MetaPathFinder):
    """Registers when an import has brought transformers' models, then leaves.

    Modules of transformers import each other in circles, and Longbird's import them. So it waits
    for the end of the outermost of all these imports, when no module is half there.
    """

    def __init__(self) -> None:
        self.running = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, with a loader that tells when it is done."""
        if fullname.partition(".")[0] not in ("transformers", "longbird"):
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    self._watch(spec.loader)
                    return spec
        return None

    def _watch(self, loader: Loader | None) -> None:
        if loader is None:  # a namespace, in which nothing is executed
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            depth = getattr(self.running, "depth", 0)
            self.running.depth = depth + 1
            try:
                execute(module)
            finally:
                self.running.depth = depth
            if depth == 0 and TRIGGER in sys.modules and self in sys.meta_path:
                sys.meta_path.remove(self)
                register()

        # On this one loader and until it runs: it stays what it is for all who look at it.
        setattr(loader, "exec_module", exec_module)  # noqa: B010


if TRIGGER in sys.modules:
    register()
else:
    sys.meta_path.insert(0, AfterTransformers())
