"""The causal decoder: the rolling cache gives what the full forward gives, in constant memory."""

import copy
import itertools
import pickle

import pytest
import torch
import transformers

import longbird as lb

GRAPHS = {
    "window": lb.Window(5),
    "dilated": lb.Window(3, dilation=4),
    "sinks": lb.Window(4) | lb.GlobalTokens([0, 1]),
    "blocks": lb.BlockWindow(3, 4) | lb.GlobalBlocks(first=1, last=0, block=4),
    # Longformer's language model: windows grow from layer to layer, the last ones are dilated.
    "layers": [lb.Window(2), lb.Window(6), lb.Window(6, dilation=2) | lb.Window(1)],
    "heads": lb.PerHead([lb.Window(2) | lb.GlobalTokens([1]), lb.Window(3, dilation=3)]),
    "nothing seen": lb.Window(4) & lb.Edges([(3, 2), (4, 3), (4, 4)]),
}
POSITIONS = {
    "absolute": {},
    "padding-aware": {"positions": "padding-aware"},
    "none": {"positions": "none"},
    "relative": {"positions": "none", "relative_buckets": 8, "relative_max_distance": 16},
}
# Every graph, and every way to say where a token is.
CASES = [(graph, "absolute") for graph in GRAPHS]
CASES += [("sinks", positions) for positions in POSITIONS if positions != "absolute"]
LAYERS = 3
VOCABULARY = 40
# What the cache changes is the order of sums.
CLOSE = {"atol": 2e-5, "rtol": 0}


def decoder(graph: object, **changes: object) -> lb.LongbirdForCausalLM:
    torch.manual_seed(0)
    config = lb.LongbirdConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=LAYERS,
        intermediate_size=32,
        max_position_embeddings=3000,
        initializer_range=0.2,
        type_vocab_size=0,
        sep_token_id=None,
        eos_token_id=None,
        graph=graph,
        **changes,
    )
    return lb.LongbirdForCausalLM(config).eval()


def tokens(rows: int, n: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (rows, n), generator=generator)


def left_padded(n: int = 14, empty: tuple[int, ...] = (0, 9, 4)):
    """A batch, its mask, and the documents in it."""
    ids, mask = tokens(len(empty), n), torch.ones(len(empty), n, dtype=torch.int64)
    for row, count in enumerate(empty):
        ids[row, :count], mask[row, :count] = 0, 0
    return ids, mask, [ids[row : row + 1, count:] for row, count in enumerate(empty)]


def in_pieces(model, ids, first, piece, mask=None):
    """Logits with a cache that is given the tokens piece by piece."""
    logits, cache = [], None
    edges = [0, *range(first, ids.shape[1], piece), ids.shape[1]]
    for start, end in itertools.pairwise(edges):
        seen = None if mask is None else mask[:, :end]
        out = model(ids[:, start:end], attention_mask=seen, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        logits.append(out.logits)
    return torch.cat(logits, 1), cache


def greedy(model, ids, count, mask=None):
    """The most probable tokens, by full forward passes alone."""
    for _ in range(count):
        logits = model(ids, attention_mask=mask, use_cache=False).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
        mask = None if mask is None else torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
    return ids


def cached_bytes(cache):
    return sum(
        x.numel() * x.element_size()
        for layer in cache.layers
        for x in (layer.keys, layer.values, layer.positions)
    )


# ---- the full forward ----


@pytest.mark.parametrize("graph", [g for g in GRAPHS if g != "nothing seen"])
def test_full_forward_is_dense_attention_under_the_mask(graph, tmp_path):
    """Against BERT of transformers, which takes any mask [rows, 1, n, n]."""
    torch.manual_seed(0)
    theirs = transformers.BertLMHeadModel(
        transformers.BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=16,
            num_attention_heads=2,
            num_hidden_layers=LAYERS,
            intermediate_size=32,
            is_decoder=True,
            initializer_range=0.2,
            attn_implementation="eager",
        )
    ).eval()
    chosen = GRAPHS[graph] if isinstance(GRAPHS[graph], list) else [GRAPHS[graph]] * LAYERS
    for layer, piece in zip(theirs.bert.encoder.layer, chosen, strict=True):
        mask = torch.from_numpy((piece & lb.Causal()).mask(50, heads=2)[None])
        layer.register_forward_pre_hook(
            lambda _, args, kwargs, mask=mask: (
                (args[0], torch.where(mask, 0.0, -torch.inf), *args[2:]), kwargs
            ),
            with_kwargs=True,
        )  # fmt: skip
    theirs.save_pretrained(tmp_path)
    ours = lb.LongbirdForCausalLM.from_pretrained(tmp_path, graph=GRAPHS[graph])
    ids = tokens(2, 50)
    with torch.no_grad():
        expected = theirs(ids, use_cache=False).logits
        torch.testing.assert_close(ours(ids, use_cache=False).logits, expected, **CLOSE)
        torch.testing.assert_close(in_pieces(ours, ids, 7, 1)[0], expected, **CLOSE)


@pytest.mark.parametrize(("graph", "positions"), CASES)
def test_a_later_token_never_changes_earlier_logits(graph, positions):
    model, ids = decoder(GRAPHS[graph], **POSITIONS[positions]), tokens(1, 40)
    changed = ids.clone()
    changed[0, 25:] = (changed[0, 25:] + 1) % VOCABULARY
    with torch.no_grad():
        before = model(ids, use_cache=False).logits[:, :25]
        assert torch.equal(model(changed, use_cache=False).logits[:, :25], before)
        alone = model(ids[:, :25], use_cache=False).logits
        torch.testing.assert_close(alone, before, **CLOSE)


def test_global_tokens_of_the_batch_would_see_the_future():
    """`global_attention_mask` shows a token all others, later ones too: no causal model has it."""
    model, ids = decoder(GRAPHS["window"]), tokens(1, 20)
    marked = torch.zeros_like(ids)
    marked[0, 4] = 1
    with pytest.raises(ValueError, match="global_attention_mask"):
        model(ids, global_attention_mask=marked)


def test_the_configuration_of_the_caller_stays_as_it_is():
    config = decoder(lb.Window(3)).config
    assert config.is_decoder
    assert config.graph == lb.Window(3)
    assert set(config.layer_graphs) == {lb.Window(3) & lb.Causal()}
    mine = lb.LongbirdConfig(graph=lb.Window(3), num_hidden_layers=1, hidden_size=24)
    lb.LongbirdForCausalLM(mine)
    assert not mine.is_decoder
    assert mine.graph == lb.Window(3)


# ---- the rolling cache ----


@pytest.mark.fast_cases(3)
@torch.no_grad()
@pytest.mark.parametrize(("graph", "positions"), CASES)
def test_token_by_token_equals_the_full_forward(graph, positions):
    model, ids = decoder(GRAPHS[graph], **POSITIONS[positions]), tokens(2, 200)
    full = model(ids, use_cache=False).logits
    for first, piece in ((7, 1), (64, 9)):
        logits, _ = in_pieces(model, ids, first, piece)
        torch.testing.assert_close(logits, full, **CLOSE)


@torch.no_grad()
@pytest.mark.slow  # token by token
@pytest.mark.parametrize("graph", ["sinks", "layers"])
def test_thousands_of_tokens(graph):
    model, ids = decoder(GRAPHS[graph]), tokens(1, 2500)
    full = model(ids, use_cache=False).logits
    logits, cache = in_pieces(model, ids, 1500, 1)
    torch.testing.assert_close(logits, full, **CLOSE)
    assert cache.get_seq_length() == 2500


@torch.no_grad()
def test_a_decoder_starts_with_one_token():
    graph = lb.Window(4) | lb.GlobalTokens([0])
    model, ids = decoder(graph), tokens(1, 30)
    full = model(ids, use_cache=False).logits
    torch.testing.assert_close(in_pieces(model, ids, 1, 1)[0], full, **CLOSE)
    with pytest.raises(ValueError, match="position 1 does not exist in a sequence of 1 tokens"):
        decoder(GRAPHS["sinks"])(ids[:, :1])


@torch.no_grad()
@pytest.mark.parametrize(("graph", "positions"), CASES)
def test_documents_in_a_left_padded_batch_are_as_alone(graph, positions):
    model = decoder(GRAPHS[graph], **POSITIONS[positions])
    ids, mask, documents = left_padded(60, (0, 50, 23))
    logits, _ = in_pieces(model, ids, 55, 2, mask)
    for row, document in enumerate(documents):
        alone = model(document, use_cache=False).logits
        torch.testing.assert_close(logits[row : row + 1, -alone.shape[1] :], alone, **CLOSE)
        assert not logits[row, : 60 - alone.shape[1]].any() or row == 0


@torch.no_grad()
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g != "nothing seen"])
def test_memory_is_constant(graph):
    model = decoder(GRAPHS[graph])
    cache, sizes = None, {}
    for n in (300, *[1] * 100):  # a prompt longer than the reach, then token by token
        cache = model(tokens(1, n), past_key_values=cache, use_cache=True).past_key_values
        sizes[cache.get_seq_length()] = cached_bytes(cache)
    assert len(set(sizes.values())) == 1
    for layer, layer_graph in zip(cache.layers, model.config.layer_graphs, strict=True):
        i, j = layer_graph.mask(200, heads=2).any(0).nonzero()
        sinks = {"blocks": 4, "sinks": 2, "heads": 2}.get(graph, 0)
        reach = int((i - j)[j >= sinks].max())
        slots = layer.keys.shape[2]
        assert slots <= reach + sinks + 1
        assert layer.keys.shape == layer.values.shape == (1, 2, slots, 8)
        # Not a view of something larger.
        assert layer.keys.untyped_storage().nbytes() == layer.keys.numel() * 4
        assert layer.values.untyped_storage().nbytes() == layer.values.numel() * 4


@torch.no_grad()
def test_a_full_graph_keeps_everything():
    model, ids = decoder(lb.Full()), tokens(2, 40)
    logits, cache = in_pieces(model, ids, 5, 1)
    torch.testing.assert_close(logits, model(ids, use_cache=False).logits, **CLOSE)
    assert cache.layers[0].keys.shape[2] == 40


@torch.no_grad()
def test_a_cache_is_copied_chosen_repeated_and_reset():
    model = decoder(GRAPHS["sinks"])
    ids, mask, _ = left_padded()
    start = model(ids, attention_mask=mask, use_cache=True).past_key_values
    new = tokens(3, 5, seed=2)
    expected = model(
        torch.cat([ids, new], 1),
        attention_mask=torch.cat([mask, torch.ones_like(new)], 1),
        use_cache=False,
    ).logits[:, -5:]

    def follow(cache, rows):
        return model(new[rows], past_key_values=cache).logits

    torch.testing.assert_close(follow(copy.deepcopy(start), [0, 1, 2]), expected, **CLOSE)
    reloaded = pickle.loads(pickle.dumps(start))
    torch.testing.assert_close(follow(reloaded, [0, 1, 2]), expected, **CLOSE)
    for change in ("reorder_cache", "batch_select_indices"):
        cache, rows = copy.deepcopy(start), [2, 0, 2]
        getattr(cache, change)(torch.tensor(rows))
        torch.testing.assert_close(follow(cache, rows), expected[rows], **CLOSE)
    cache, rows = copy.deepcopy(start), [0, 0, 1, 1, 2, 2]
    cache.batch_repeat_interleave(2)
    torch.testing.assert_close(follow(cache, rows), expected[rows], **CLOSE)
    start.reset()
    assert start.get_seq_length() == 0
    again = model(new, past_key_values=start).logits
    torch.testing.assert_close(again, model(new, use_cache=False).logits, **CLOSE)


@torch.no_grad()
def test_what_a_cache_cannot_do_is_said():
    model, ids = decoder(GRAPHS["window"]), tokens(2, 8)
    cache = model(ids, use_cache=True).past_key_values
    with pytest.raises(RuntimeError, match="activate_past_recording"):
        cache.crop(-1)
    other = transformers.DynamicCache()
    other.update(torch.zeros(2, 2, 3, 8), torch.zeros(2, 2, 3, 8), 0)
    with pytest.raises(TypeError, match=r"RollingCache .* received DynamicCache with tokens in"):
        model(ids, past_key_values=other)
    encoder = lb.LongbirdModel(lb.LongbirdConfig(hidden_size=24, num_hidden_layers=1))
    with pytest.raises(ValueError, match="needs a causal model"):
        encoder(ids, past_key_values=cache)


@pytest.mark.parametrize(
    ("graph", "advice"),
    [
        (lb.bigbird(4, random=1, global_last=0), "RandomBlocks.*leave it out"),
        (lb.Window(3) | lb.GlobalTokens([-1]), "GlobalTokens.*from the beginning"),
        (lb.bigbird(4, random=0), "GlobalBlocks.*last=0"),
    ],
    ids=["random", "negative", "last"],
)
def test_graphs_that_cannot_stream_train_but_have_no_cache(graph, advice):
    model, ids = decoder(graph), tokens(2, 30)
    for refused in (
        lambda: model(ids, use_cache=True),
        lambda: model.generate(ids, max_new_tokens=3),
    ):
        with pytest.raises(ValueError, match=advice):
            refused()
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits
        changed = ids.clone()
        changed[:, 20:] = 3
        assert torch.equal(model(changed, use_cache=False).logits[:, :20], logits[:, :20])
    generated = model.generate(ids, max_new_tokens=3, do_sample=False, use_cache=False)
    assert torch.equal(generated, greedy(model, ids, 3))
    evaluated = model(ids, labels=ids).loss  # an evaluation asks for no cache
    loss = model.train()(ids, labels=ids).loss
    loss.backward()
    assert evaluated.isfinite()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in model.parameters())


# ---- generate ----


@pytest.mark.fast_cases(3)
@pytest.mark.parametrize(("graph", "positions"), CASES)
def test_greedy_generation(graph, positions):
    model = decoder(GRAPHS[graph], **POSITIONS[positions])
    ids, mask, documents = left_padded()
    options = {"attention_mask": mask, "max_new_tokens": 20, "do_sample": False}
    cached = model.generate(ids, **options)
    assert torch.equal(cached, model.generate(ids, **options, use_cache=False))
    assert torch.equal(cached, greedy(model, ids, 20, mask))
    for row, document in enumerate(documents):
        assert torch.equal(cached[row, -20:], greedy(model, document, 20)[0, -20:])
    embeddings = model.get_input_embeddings()(ids)
    assert torch.equal(model.generate(inputs_embeds=embeddings, **options), cached[:, -20:])


@pytest.mark.parametrize(
    "how",
    [
        {"num_beams": 3, "do_sample": False},
        {"num_beams": 3, "do_sample": False, "num_return_sequences": 2, "length_penalty": 0.5},
        {"do_sample": True, "num_return_sequences": 3},
        {"do_sample": True, "num_beams": 2, "num_return_sequences": 2},
        {"do_sample": False, "repetition_penalty": 1.5, "no_repeat_ngram_size": 2},
    ],
    ids=["beams", "several beams", "samples", "sampled beams", "processed"],
)
def test_other_ways_to_generate(how):
    """The cache changes nothing, whatever decides which token comes next."""
    model = decoder(GRAPHS["sinks"])
    ids, mask, _ = left_padded()

    def generate(use_cache):
        torch.manual_seed(3)
        return model.generate(
            ids, attention_mask=mask, max_new_tokens=25, use_cache=use_cache, **how
        )

    assert generate(True).shape == (3 * how.get("num_return_sequences", 1), 39)
    assert torch.equal(generate(True), generate(False))


def test_an_end_token_ends_a_row():
    model = decoder(GRAPHS["sinks"])
    ids, mask, _ = left_padded()
    free = greedy(model, ids, 30, mask)
    end = int(free[1, 20])
    found = model.generate(
        ids, attention_mask=mask, max_new_tokens=30, do_sample=False, eos_token_id=end
    )
    for row in range(3):
        after = (free[row, 14:] == end).nonzero()
        stop = 14 + int(after[0]) + 1 if len(after) else 44
        assert torch.equal(found[row, :stop], free[row, :stop])
        assert not found[row, stop:].any()


def test_generation_goes_on_from_a_cache():
    model, ids = decoder(GRAPHS["sinks"]), tokens(1, 12)
    options = {"max_new_tokens": 10, "do_sample": False}
    first = model.generate(ids, **options, return_dict_in_generate=True, output_logits=True)
    assert isinstance(first.past_key_values, lb.RollingCache)
    longer = torch.cat([first.sequences, tokens(1, 6, seed=4)], 1)
    expected = greedy(model, longer, 10)
    found = model.generate(longer, past_key_values=first.past_key_values, **options)
    assert torch.equal(found, expected)
    with torch.no_grad():
        full = model(first.sequences, use_cache=False).logits[0, 11:-1]
    torch.testing.assert_close(torch.cat(first.logits), full, **CLOSE)


def test_hidden_states_of_every_step():
    model, ids = decoder(GRAPHS["window"]), tokens(1, 12)
    out = model.generate(
        ids,
        max_new_tokens=4,
        do_sample=False,
        return_dict_in_generate=True,
        output_hidden_states=True,
    )
    with torch.no_grad():
        full = model(out.sequences, use_cache=False, output_hidden_states=True).hidden_states
    for layer in range(LAYERS + 1):
        steps = torch.cat([step[layer] for step in out.hidden_states], 1)
        torch.testing.assert_close(steps, full[layer][:, :-1], **CLOSE)


def test_a_prompt_goes_in_by_pieces():
    model, ids = decoder(GRAPHS["sinks"]), tokens(1, 50)
    found = model.generate(ids, max_new_tokens=10, do_sample=False, prefill_chunk_size=16)
    assert torch.equal(found, greedy(model, ids, 10))


@pytest.mark.parametrize("positions", ["absolute", "padding-aware"])
def test_positions_that_are_given_are_taken(positions):
    model, ids = decoder(GRAPHS["sinks"], **POSITIONS[positions]), tokens(2, 9)
    given = (torch.arange(9) * 3 + 5).expand(2, 9)
    found = model.generate(ids, position_ids=given, max_new_tokens=12, do_sample=False)
    for _ in range(12):
        logits = model(ids, position_ids=given, use_cache=False).logits[:, -1]
        ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], 1)
        given = torch.cat([given, given[:, -1:] + 1], 1)
    assert torch.equal(found, ids)


@pytest.mark.parametrize("graph", ["window", "sinks", "layers"])
@pytest.mark.parametrize("helper", ["prompt", "model"])
def test_assisted_generation_takes_tokens_back(graph, helper):
    """Guessed tokens go into the cache, and out of it where the model would write others."""
    model, ids = decoder(GRAPHS[graph]), tokens(1, 12)
    ids = torch.cat([ids, ids], 1)
    options = {"prompt_lookup_num_tokens": 3}
    if helper == "model":
        options = {"assistant_model": decoder(GRAPHS["dilated"])}
    found = model.generate(ids, max_new_tokens=30, do_sample=False, **options)
    assert torch.equal(found, greedy(model, ids, 30))


def test_save_and_generate(tmp_path):
    model, ids = decoder(GRAPHS["layers"]), tokens(1, 12)
    model.save_pretrained(tmp_path)
    again = lb.LongbirdForCausalLM.from_pretrained(tmp_path)
    assert again.config.layer_graphs == model.config.layer_graphs
    options = {"max_new_tokens": 10, "do_sample": False}
    assert torch.equal(again.generate(ids, **options), model.generate(ids, **options))


# ---- loss ----


@pytest.mark.parametrize("side", ["left", "right", "hole"])
def test_the_loss_of_a_batch_is_that_of_its_documents(side):
    model, ids = decoder(GRAPHS["sinks"]).train(), tokens(3, 14)
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout_p"):
            module.dropout_p = 0.0
    mask = torch.ones_like(ids)
    match side:
        case "left":
            mask[0, :9], mask[1, :4] = 0, 0
        case "right":
            mask[0, 9:], mask[1, 4:] = 0, 0
        case "hole":
            mask[0, 3], mask[1, 6:8] = 0, 0
    labels = ids.clone()
    labels[2, 5:8] = -100  # not to be predicted
    total, count = torch.zeros(()), 0
    for row in range(3):
        kept = mask[row] != 0
        document, wanted = ids[row : row + 1, kept], labels[row : row + 1, kept]
        logits = model(document).logits[0, :-1]
        total = total + torch.nn.functional.cross_entropy(logits, wanted[0, 1:], reduction="sum")
        count += int((wanted[0, 1:] != -100).sum())
    expected = torch.autograd.grad(total / count, model.longbird.embeddings.tokens.weight)[0]
    loss = model(ids, attention_mask=mask, labels=labels).loss
    found = torch.autograd.grad(loss, model.longbird.embeddings.tokens.weight)[0]
    torch.testing.assert_close(loss, total / count, **CLOSE)
    torch.testing.assert_close(found, expected, **CLOSE)
    summed = model(ids, attention_mask=mask, labels=labels, num_items_in_batch=7).loss
    torch.testing.assert_close(summed, total / 7, **CLOSE)


def test_logits_of_the_last_tokens():
    model, ids = decoder(GRAPHS["sinks"]), tokens(2, 10)
    with torch.no_grad():
        full = model(ids).logits
        torch.testing.assert_close(model(ids, logits_to_keep=3).logits, full[:, -3:], **CLOSE)


def test_another_cache_is_refused():
    model = decoder(lb.Window(4))
    with pytest.raises(ValueError, match="rolling cache"):
        model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=2, cache_implementation="static")


def test_sparse_prediction_gives_the_logits_that_the_loss_is_made_of() -> None:
    ids, padding = tokens(2, 9), torch.ones(2, 9, dtype=torch.long)
    padding[1, 4:] = 0
    labels = ids.masked_fill(padding == 0, -100)
    dense, sparse = (decoder(lb.Window(5), sparse_prediction=x) for x in (False, True))
    one, other = (model(ids, padding, labels=labels) for model in (dense, sparse))
    assert torch.equal(one.loss, other.loss)
    expected = torch.cat([one.logits[0, :8], one.logits[1, :3]])
    torch.testing.assert_close(other.logits, expected, **CLOSE)
