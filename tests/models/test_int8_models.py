"""Models with int8 weights: every class, near float32, and for inference only."""

import copy
from itertools import cycle

import pytest
import torch
import transformers
from small_models import (
    ENCODER_CLASSES,
    ENCODERS,
    WRITER_CLASSES,
    WRITERS,
    assert_same,
    class_of,
    first_of,
    ids_of,
    inputs_of,
    model_of,
    run,
)

import longbird as lb
from longbird.files.sources import minilm
from longbird.models.layers.int8 import Int8Linear


def distance(a, b):
    """How far b is from a, in parts of a."""
    a, b = first_of(a), first_of(b)
    there = a.isfinite() & (a.abs() < 1e6)  # BigBird hides the question by a large number
    assert torch.equal(there, b.isfinite() & (b.abs() < 1e6))
    return float((a - b)[there].norm() / a[there].norm())


# Every class once, the families in turns.
FAMILIES = cycle(ENCODERS), cycle(WRITERS)
CASES = [
    *((next(FAMILIES[0]), name) for name in ENCODER_CLASSES),
    ("window", "ForCausalLM"),
    *((next(FAMILIES[1]), name) for name in WRITER_CLASSES),
]


@pytest.mark.parametrize(("family", "name"), CASES)
def test_every_model_is_near_and_is_saved(family, name, tmp_path):
    model, inputs = model_of(family, name), inputs_of(family, name)
    before = copy.deepcopy(model.state_dict())
    small = lb.quantize(model)
    assert_same(model.state_dict(), before, atol=0, rtol=0)
    assert model.config.quantize is None
    assert small.config.quantize == "int8"
    out = run(small, **inputs)
    assert 0 < distance(run(model, **inputs), out) < 0.1

    small.save_pretrained(tmp_path / "small")
    loaded, info = class_of(name).from_pretrained(tmp_path / "small", output_loading_info=True)
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert_same(loaded.state_dict(), small.state_dict(), atol=0, rtol=0)
    assert_same(run(loaded, **inputs), out, atol=0, rtol=0)

    model.save_pretrained(tmp_path / "large")
    rounded = class_of(name).from_pretrained(tmp_path / "large", quantize="int8")
    assert_same(run(rounded, **inputs), out, atol=0, rtol=0)
    assert not loaded.training
    assert not any(x.requires_grad for x in loaded.parameters())


def test_what_is_rounded():
    small = lb.quantize(model_of("longformer", "ForQuestionAnswering", qa_feed_forward=True))
    rounded = {name for name, x in small.named_modules() if isinstance(x, Int8Linear)}
    layer = [f"attention.{x}" for x in ("query", "key", "value", "output")]
    layer += ["feed_forward.enter", "feed_forward.leave"]
    assert rounded == {f"longbird.layers.{i}.{x}" for i in range(2) for x in layer}
    assert lb.quantize(small) is small


@pytest.mark.parametrize(
    ("width", "heads", "inner"), [(18, 3, 7), (64, 4, 256), (100, 5, 33), (192, 6, 768)]
)
def test_random_shapes(width, heads, inner):
    torch.manual_seed(0)
    config = lb.LongbirdConfig(
        vocab_size=99, hidden_size=width, num_attention_heads=heads, intermediate_size=inner,
        num_hidden_layers=3, graph=lb.bigbird(block=16), initializer_range=0.1,
    )  # fmt: skip
    model = lb.LongbirdModel(config).eval()
    ids = torch.randint(3, 99, (2, 300))
    a, b = (run(x, input_ids=ids) for x in (model, lb.quantize(model)))
    assert distance(a, b) < 0.08
    one, none = ids[:1, :1], ids[:0]
    assert distance(run(model, input_ids=one), run(lb.quantize(model), input_ids=one)) < 0.08
    assert run(lb.quantize(model), input_ids=none).last_hidden_state.shape == (0, 300, width)


@pytest.mark.slow  # real weights
def test_minilm():
    path = minilm.path()
    model = lb.LongbirdForEmbedding.from_pretrained(path)
    small = lb.LongbirdForEmbedding.from_pretrained(path, quantize="int8")
    texts = [
        "The plant was closed in 1987, after a strike of nine weeks.",
        "Sparse attention lets a model read a whole document at once. " * 12,
        "¿Dónde está la biblioteca?",
    ]
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    inputs = dict(tokenizer(texts, padding=True, return_tensors="pt"))
    a, b = (run(each, **inputs).embeddings for each in (model, small))
    assert torch.cosine_similarity(a, b).min() > 0.985
    assert (a @ a.T - b @ b.T).abs().max() < 0.05


def test_a_document_alone_and_in_a_batch():
    small = lb.quantize(model_of("bigbird", "Model"))
    inputs = inputs_of("bigbird", "Model")
    batch = run(small, **inputs).last_hidden_state
    alone = run(small, **{key: x[1:2, :30] for key, x in inputs.items()}).last_hidden_state
    torch.testing.assert_close(alone[0], batch[1, :30], atol=1e-6, rtol=1e-5)


def test_one_thread_and_two():
    small, inputs = lb.quantize(model_of("bigbird", "Model")), inputs_of("bigbird", "Model")
    before, found = torch.get_num_threads(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(run(small, **inputs).last_hidden_state)
    torch.set_num_threads(before)
    assert torch.equal(*found)


def test_nan_is_not_hidden():
    small = lb.quantize(model_of("bigbird", "Model"))
    states = small.embeddings.tokens(ids_of()).detach()
    states[0, 5, 2] = torch.nan
    out = run(small, inputs_embeds=states).last_hidden_state
    assert bool(out[0, 5].isnan().all())
    assert not bool(out[1:].isnan().any())


def test_generation():
    model = model_of("window", "ForCausalLM", eos_token_id=None)
    small = lb.quantize(model)
    text = small.generate(ids_of(1, 5), max_new_tokens=10, do_sample=False)
    want = ids_of(1, 5)
    for _ in range(10):  # without a cache
        logits = run(small, input_ids=want, use_cache=False).logits[:, -1]
        want = torch.cat([want, logits.argmax(-1, keepdim=True)], 1)
    assert torch.equal(text, want)


def test_a_model_that_is_made_with_int8_weights():
    torch.manual_seed(0)
    made = lb.LongbirdModel(model_of("bigbird", "Model", quantize="int8").config)
    assert made.quantized
    assert not made.training
    assert int(made.layers[0].attention.query.weight.abs().max()) == 64
    assert bool(run(made, input_ids=ids_of()).last_hidden_state.isfinite().all())


def test_it_is_not_trained():
    model = model_of("bigbird", "ForSequenceClassification")
    small = lb.quantize(model)
    with pytest.raises(ValueError, match=r"inference only.*train the model"):
        small.train()
    assert not small.training
    assert small.eval() is small
    with pytest.raises(ValueError, match="no gradients"):
        states = torch.zeros(1, 5, model.config.hidden_size, requires_grad=True)
        small(inputs_embeds=states)
    model.train()


@pytest.mark.slow  # the Trainer takes seconds to import
def test_the_trainer_does_not_take_it():
    small = lb.quantize(model_of("bigbird", "ForSequenceClassification"))
    arguments = transformers.TrainingArguments("unused", use_cpu=True, report_to=[])
    rows = [{"input_ids": [5, 6], "labels": 0}]
    with pytest.raises(ValueError, match="inference only"):
        transformers.Trainer(small, arguments, train_dataset=rows).train()


def test_other_types_and_models():
    with pytest.raises(ValueError, match=r"float32 weights, received torch.bfloat16"):
        lb.quantize(model_of("bigbird", "Model").to(torch.bfloat16))
    with pytest.raises(ValueError, match=r"computes in float32 on a CPU, received torch.bfloat16"):
        run(lb.quantize(model_of("bigbird", "Model")).to(torch.bfloat16), input_ids=ids_of())
    with pytest.raises(TypeError, match=r"takes a Longbird model.*received Linear"):
        lb.quantize(torch.nn.Linear(2, 3))
    with pytest.raises(ValueError, match="quantize must be one of int8, or None, received 'int4'"):
        lb.LongbirdConfig(quantize="int4")


def test_a_configuration_that_says_what_the_weights_are_not(tmp_path):
    model = model_of("bigbird", "Model")
    model.config.quantize = "int8"
    with pytest.raises(ValueError, match="quantize='int8', and the weights do not agree"):
        model.save_pretrained(tmp_path)
    assert not any(tmp_path.iterdir())


@pytest.mark.slow  # five seconds of tracing
def test_export():
    small = lb.quantize(model_of("etc", "Model")).eval()
    ids = ids_of(2)
    program = torch.export.export(small, (ids,)).module()
    torch.testing.assert_close(
        program(ids).last_hidden_state, run(small, input_ids=ids).last_hidden_state
    )


@pytest.mark.slow  # seconds of tracing
def test_compile():
    small = lb.quantize(model_of("bigbird", "Model"))
    out = run(torch.compile(small, backend="aot_eager"), input_ids=ids_of()).last_hidden_state
    want = run(small, input_ids=ids_of()).last_hidden_state
    torch.testing.assert_close(out, want, atol=0.02, rtol=0.02)  # another rounding here and there
