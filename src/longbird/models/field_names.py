"""Names in a configuration that are not its fields: those of other libraries, and mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from transformers import GenerationConfig

FOREIGN = {
    **dict.fromkeys(
        ("attention_type", "block_size", "block", "num_random_blocks", "random"),
        "graph=bigbird(...)",
    ),
    **dict.fromkeys(
        ("attention_window", "sliding_window", "window"), "graph=longformer(window=...)"
    ),
    "d_model": "hidden_size",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "encoder_layers": "num_hidden_layers",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_ffn_dim": "intermediate_size",
    "decoder_ffn_dim": "decoder_intermediate_size",
    "max_decoder_position_embeddings": "max_decoder_positions",
    "max_encoder_position_embeddings": "max_position_embeddings",
    "activation_function": "hidden_act",
    "init_std": "initializer_range",
    "scale_embedding": "rescale_embeddings",
    "use_bias": "attention_bias",
}
"""Names of fields in other models of transformers, and our fields for them."""

KEPT = frozenset(GenerationConfig().to_dict()) | {
    # what transformers reads or stores beside the fields of a configuration
    "model_type", "name_or_path", "_name_or_path", "_commit_hash", "num_labels", "torch_dtype",
    "output_attentions", "_output_attentions", "attn_implementation", "experts_implementation",
    "_attn_implementation", "_attn_implementation_internal", "_attn_implementation_autoset",
    "_experts_implementation", "_experts_implementation_internal", "per_layer_config",
    "auto_map", "custom_pipelines", "quantization_config", "task_specific_params", "prefix",
    "tokenizer_class", "tie_last_hidden_states",
    # what earlier versions of it stored in every configuration
    "finetuning_task", "pruned_heads", "torchscript", "tf_legacy_loss", "use_bfloat16",
    "tie_encoder_decoder", "cross_attention_hidden_size",
    # what CrossEncoder of sentence-transformers stores
    "sentence_transformers",
}  # fmt: skip
"""Names that transformers and libraries on top of it store in any configuration."""

LOADING = (
    "cache_dir", "force_download", "local_files_only", "token", "revision", "subfolder", "proxies",
    "trust_remote_code", "code_revision", "return_unused_kwargs", "_from_auto", "_from_pipeline",
    "_configuration_file",
)  # fmt: skip
"""Options of a configuration's `from_pretrained` about its file."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a question about the field that was probably meant; empty if no field is similar.

    Examples:
        >>> nearest("graf", ["graph", "norm"])
        ' (did you mean graph?)'
    """
    close = get_close_matches(name, sorted(known), 1, cutoff)
    meant = FOREIGN.get(name) or next(iter(close), None)
    return f" (did you mean {meant}?)" if meant else ""
