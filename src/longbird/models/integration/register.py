"""Registration of Longbird's models and attention with transformers.

`import longbird` must not import transformers, which takes seconds, and transformers has no entry
points that would find Longbird by itself. So `import longbird` calls `register_on_import`. It
registers at once if transformers' models have been imported, and otherwise right after that
import, by a finder in `sys.meta_path` that then removes itself (docs/adr/0018-models.md). With
`LONGBIRD_REGISTER=0` in the environment it does nothing, and programs call
`longbird.register_with_transformers()` themselves.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

TRIGGER = "transformers.models.auto.configuration_auto"
"""The module that finds a model by its type; wherever there are models, it has been imported."""


def register_with_transformers() -> None:
    """Register Longbird's models and its attention implementation with transformers.

    After that, the Auto classes and pipelines load folders that Longbird saved, and models of
    transformers accept `attn_implementation="longbird"` and `config.longbird_graph`. `import
    longbird` does this as soon as transformers' models are imported, so that a call is only needed
    if the environment variable LONGBIRD_REGISTER is 0. Further calls change nothing.

    Examples:
        >>> import longbird as lb
        >>> lb.register_with_transformers()
        >>> from transformers import AutoConfig
        >>> type(AutoConfig.for_model("longbird")) is lb.LongbirdConfig
        True
    """
    import transformers as hf

    from longbird import models
    from longbird.models.integration import attention
    from longbird.models.integration.tasks import TASKS

    attention.register()
    for config in (models.LongbirdConfig, models.LongbirdSeq2SeqConfig):
        hf.AutoConfig.register(config.model_type, config, exist_ok=True)
    for task in TASKS.values():
        for model in (task.encoder, task.seq2seq):
            if task.auto is not None and model is not None:
                ours = getattr(models, model)
                getattr(hf, task.auto).register(ours.config_class, ours, exist_ok=True)


def register_on_import() -> None:
    """Register now if transformers' models have been imported, otherwise after their import."""
    if os.environ.get("LONGBIRD_REGISTER") == "0":
        return
    if TRIGGER in sys.modules:
        register_with_transformers()
    elif not any(isinstance(finder, AfterTransformers) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterTransformers())


class AfterTransformers(MetaPathFinder):
    """Registers Longbird after an import of transformers' models, and then removes itself.

    Modules of transformers import each other in circles, and Longbird's modules import them. So it
    waits for the end of the outermost import, when no module is half imported.
    """

    def __init__(self) -> None:
        self.running = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what the other finders find, with a loader that reports when it is done."""
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
                register_with_transformers()

        # Only on this loader, and only until it runs: inspection sees it unchanged afterwards.
        setattr(loader, "exec_module", exec_module)  # noqa: B010
