"""What of a model learns: all of it, all but words or the first layers, or low-rank adapters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import nn

from longbird.applications.training.engine.processes import shares_weights
from longbird.applications.training.settings.groups import Settings
from longbird.errors import InvalidValueError


def adapted(model: Any, settings: Settings) -> Any:
    """The model with frozen layers, or with adapters beside its linear layers."""
    if settings.frozen_layers:
        writes = model.config.is_encoder_decoder
        encoder = model.model.encoder if writes else model.longbird
        if settings.frozen_layers > len(encoder.layers):
            raise InvalidValueError(
                f"frozen_layers must be at most the {len(encoder.layers)} layers of the model, "
                f"received {settings.frozen_layers}"
            )
        for part in (encoder.embeddings, *encoder.layers[: settings.frozen_layers]):
            part.requires_grad_(False)
    if settings.frozen_words:
        model.get_input_embeddings().requires_grad_(False)
    if settings.lora:
        import peft

        if shares_weights():
            raise InvalidValueError(
                "`lora` cannot be used with FSDP: adapters take so little memory that the "
                "processes need not share out the weights; launch it without FSDP"
            )

        heads = [name for name, _ in model.named_children() if name not in ("longbird", "dropout")]
        if model.config.is_encoder_decoder:  # whose head is the vocabulary
            heads = ["cross_attention", "cross_attention_norm"]
        config = peft.LoraConfig(
            r=settings.lora,
            lora_alpha=2 * settings.lora,
            target_modules=[
                name
                for name, module in model.named_modules()
                if isinstance(module, nn.Linear)
                and name.startswith(("longbird.layers.", "model.encoder.", "model.decoder."))
                and ".cross_attention." not in name
            ],
            modules_to_save=heads,
        )
        model = peft.get_peft_model(model, config)
        # Or else peft asks for the configuration of that model, by name, with every checkpoint.
        model.peft_config["default"].base_model_name_or_path = None
    return model


def merged(trainer: Any, checkpoint: Path, anew: Callable[[], Any]) -> Any:
    """The model with the weights of a checkpoint, adapters added into them.

    Args:
        trainer: Has the model, at the end of the run.
        checkpoint: Its folder.
        anew: Makes a whole model, where that of the trainer is shared out among processes.
    """
    if trainer.is_fsdp_enabled:
        model = anew().to(trainer.args.device)
    else:
        model = trainer.accelerator.unwrap_model(trainer.model)
    weights = next(checkpoint.glob("*.safetensors"))
    state = safetensors.torch.load_file(weights)
    if hasattr(model, "merge_and_unload"):
        import peft

        peft.set_peft_model_state_dict(model, state)
        return model.merge_and_unload().eval()
    model.load_state_dict(state, strict=False)
    return model.eval()
