"""`attn_implementation="longbird"` under torch.compile: the layers of a model in one program."""

import pytest
import torch
import torch._dynamo
import transformers

import longbird as lb

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
LAYERS = 10  # more than the 8 programs that torch compiles of one function

IDS = torch.randint(5, 60, (2, 50), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(50) < torch.tensor([[50], [31]])).long()


def tiny() -> transformers.BertModel:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=LAYERS,
        intermediate_size=20,
        initializer_range=0.2,
        attn_implementation="longbird",
    )
    config.longbird_graph = lb.bigbird(block=4, random=1)
    return transformers.BertModel(config).eval()


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
def test_layers_with_graphs_of_their_own_are_compiled_once(padded):
    """With padding, the program is left where the mask is read: once, and not in every layer."""
    torch.compiler.reset()
    model, given = tiny(), {"attention_mask": MASK} if padded else {}
    expected = model(IDS, **given).last_hidden_state
    with torch._dynamo.config.patch(error_on_recompile=True):
        compiled = torch.compile(model, backend="aot_eager", fullgraph=not padded)
        torch.testing.assert_close(compiled(IDS, **given).last_hidden_state, expected)
    assert len({layer.attention.self.layer_idx for layer in model.encoder.layer}) == LAYERS
