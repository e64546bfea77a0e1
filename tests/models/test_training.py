"""The models in the hands of transformers: Trainer, checkpoints, pipelines; gradients of all."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import DataCollatorForLanguageModeling, Trainer, TrainingArguments

import longbird as lb

WORDS = "the a cat dog mat house sat ran slept on under in and good bad very".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SEP = 3


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    vocabulary = {word: number for number, word in enumerate(SPECIAL + WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", SEP)],
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=128,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def tiny(model_class: Any, dropout: float = 0.0, **changes: Any) -> Any:
    torch.manual_seed(0)
    fields = {
        "vocab_size": len(SPECIAL + WORDS),
        "hidden_size": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 128,
        "initializer_range": 0.2,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": None,
        "sep_token_id": SEP,
        "graph": lb.bigbird(block=4, random=1),
    }
    return model_class(lb.LongbirdConfig(**{**fields, **changes}))


def draw(*shape: int, seed: int = 0, high: int | None = None) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    low = 0 if high else len(SPECIAL)
    return torch.randint(low, high or len(SPECIAL + WORDS), shape, generator=generator)


def trainer(model: Any, folder: Path, data: Any, collator: Any = None, **options: Any) -> Trainer:
    fields = {
        "output_dir": str(folder),
        "use_cpu": True,
        "report_to": [],
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "no",
        "seed": 1,
    }
    arguments = TrainingArguments(**{**fields, **options})
    return Trainer(model, arguments, collator, train_dataset=data, eval_dataset=data)


def losses(run: Trainer) -> dict[int, float]:
    return {
        int(entry["step"]): entry["loss"] for entry in run.state.log_history if "loss" in entry
    }


def sentences(count: int) -> list[str]:
    subjects, verbs, places = ["cat", "dog"], ["sat", "ran", "slept"], ["mat", "house"]
    texts = []
    for number in range(count):
        subject, verb, place = subjects[number % 2], verbs[number % 3], places[number // 2 % 2]
        texts.append(f"the {subject} {verb} on a {place} and " * (1 + number % 3) + "very good")
    return texts


# ---- Trainer ----


def test_masked_language_modelling_learns_and_resumes(tmp_path):
    """Run on from a checkpoint, the losses are bitwise those of one run, with dropout."""
    words = tokenizer()
    data = [words(text) for text in sentences(24)]
    collator = DataCollatorForLanguageModeling(words, mlm_probability=0.3)
    options = {
        "max_steps": 60,
        "learning_rate": 1e-2,
        "per_device_train_batch_size": 8,
        "save_strategy": "steps",
        "save_steps": 48,
    }
    whole = trainer(
        tiny(lb.LongbirdForMaskedLM, dropout=0.1), tmp_path / "a", data, collator, **options
    )
    whole.train()
    curve = losses(whole)
    first, last = (
        sum(curve[step] for step in steps) / 5 for steps in (range(1, 6), range(56, 61))
    )
    assert last < 0.6 * first

    resumed = trainer(
        tiny(lb.LongbirdForMaskedLM, dropout=0.1), tmp_path / "b", data, collator, **options
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-48"))
    assert losses(resumed) == curve
    for ours, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(ours, other)


@pytest.mark.slow  # trains
def test_classification_learns_from_a_far_token(tmp_path):
    """The label is a word far from the first token; global blocks and layers carry it there."""
    ids = draw(64, 60)
    labels = draw(64, high=2, seed=2)
    ids[ids == 7] = 8
    ids[torch.arange(64), draw(64, high=60, seed=3)] = torch.where(labels == 1, 7, 8)
    mask = torch.ones_like(ids)
    data = [
        {"input_ids": row, "attention_mask": kept, "labels": label, "title": "not an input"}
        for row, kept, label in zip(ids, mask, labels, strict=True)
    ]
    run = trainer(
        tiny(lb.LongbirdForSequenceClassification, num_labels=2),
        tmp_path,
        data,
        max_steps=120,
        learning_rate=1e-2,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=64,
    )
    run.train()
    predicted = run.predict(data)
    assert (predicted.predictions.argmax(-1) == labels.numpy()).mean() > 0.95
    assert predicted.metrics["test_loss"] < 0.2 < losses(run)[1]


@pytest.mark.parametrize("column", ["global_attention_mask", "segment_ids", "token_type_ids"])
def test_the_trainer_drops_no_input(column, tmp_path):
    """It drops columns whose names are not in the signature of the forward pass."""
    fields = {"num_global_tokens": 2} if column == "segment_ids" else LONGFORMER
    model = tiny(lb.LongbirdForTokenClassification, num_labels=3, **fields)
    given = []
    model.register_forward_pre_hook(lambda _, args, kwargs: given.append(kwargs), with_kwargs=True)
    data = [
        {**example, column: torch.arange(20) % 2, "title": "not an input"}
        for example in examples("tokens", count=2)
    ]
    trainer(model, tmp_path, data, max_steps=1).train()
    assert set(given[0]) == {
        "input_ids", "attention_mask", "labels", "num_items_in_batch", column
    }  # fmt: skip


TASKS = {
    "masked": (lb.LongbirdForMaskedLM, {}),
    "pretraining": (lb.LongbirdForPreTraining, {}),
    "causal": (lb.LongbirdForCausalLM, {"graph": lb.Window(4) | lb.GlobalTokens([0])}),
    "one label": (lb.LongbirdForSequenceClassification, {"num_labels": 3}),
    "labels": (
        lb.LongbirdForSequenceClassification,
        {"num_labels": 3, "problem_type": "multi_label_classification"},
    ),
    "number": (lb.LongbirdForSequenceClassification, {"num_labels": 1}),
    "tokens": (lb.LongbirdForTokenClassification, {"num_labels": 3}),
    "choice": (lb.LongbirdForMultipleChoice, {}),
    "answer": (lb.LongbirdForQuestionAnswering, {"qa_feed_forward": True}),
}


def examples(task: str, count: int = 8, n: int = 20) -> list[dict[str, torch.Tensor]]:
    """Documents of different lengths, with labels."""
    found = []
    for number in range(count):
        example = {
            "input_ids": draw(n, seed=number),
            "attention_mask": (torch.arange(n) < n - number).long(),
        }
        some = torch.arange(n) % (2 + number % 3) == 0
        match task:
            case "masked":
                labels = torch.where(some, draw(n, seed=50 + number), -100)
            case "pretraining":
                # Of every document as many, as each counts as much for the second loss.
                labels = torch.where(torch.arange(n) < 5, draw(n, seed=50 + number), -100)
                example["next_sentence_label"] = torch.tensor(number % 2)
            case "causal":
                labels = torch.where(example["attention_mask"] != 0, example["input_ids"], -100)
            case "one label":
                labels = torch.tensor(number % 3)
            case "labels":
                labels = draw(3, seed=number, high=2).float()
            case "number":
                labels = torch.tensor(number / 7)
            case "tokens":
                labels = torch.where(some, draw(n, seed=number, high=3), -100)
            case "choice":
                example = {"input_ids": draw(2, n, seed=number)}
                labels = torch.tensor(number % 2)
            case _:
                example["start_positions"] = torch.tensor(number % 5)
                example["end_positions"] = torch.tensor(5 + number % 5)
                labels = None
        found.append(example if labels is None else {**example, "labels": labels})
    return found


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(2)
@pytest.mark.parametrize("task", TASKS)
def test_accumulated_gradients_are_those_of_one_batch(task, tmp_path):
    """Whatever the loss is a mean of; plain gradient descent, so that a wrong factor is seen."""
    model_class, fields = TASKS[task]
    models = []
    for size, steps in ((4, 1), (1, 4)):
        model = tiny(model_class, **fields)
        run = trainer(
            model,
            tmp_path,
            examples(task),
            max_steps=2,
            optim="sgd",
            learning_rate=0.1,
            max_grad_norm=0.0,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            train_sampling_strategy="sequential",
        )
        run.train()
        models.append((model, losses(run)))
    (whole, curve), (parts, other) = models
    assert other == pytest.approx(curve, rel=1e-5)
    for ours, theirs in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(theirs, ours, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_evaluation_gives_a_loss_and_predictions(task, tmp_path):
    model_class, fields = TASKS[task]
    model, data = tiny(model_class, **fields), examples(task)
    found = trainer(model, tmp_path, data, per_device_eval_batch_size=3).predict(data)
    with torch.no_grad():
        batch = {name: torch.stack([each[name] for each in data]) for name in data[0]}
        expected = model(**batch)
    first = found.predictions[0] if isinstance(found.predictions, tuple) else found.predictions
    torch.testing.assert_close(torch.from_numpy(first), expected[1], atol=1e-5, rtol=1e-5)
    assert 0 < found.metrics["test_loss"] < 10


def test_evaluation_with_attentions(tmp_path):
    """Rows of attention are no tensors that the Trainer could gather: it leaves them out."""
    model, data = tiny(lb.LongbirdForMaskedLM, output_attentions=True), examples("masked")
    found = trainer(model, tmp_path, data, per_device_eval_batch_size=3).predict(data)
    assert 0 < found.metrics["test_loss"] < 10


@pytest.mark.slow  # trains
@pytest.mark.fast_cases(1)
@pytest.mark.parametrize("option", ["gradient_checkpointing", "bf16"])
def test_options_of_the_trainer(option, tmp_path):
    curves = []
    for chosen in (False, True):
        run = trainer(
            tiny(lb.LongbirdForMaskedLM, dropout=0.1),
            tmp_path,
            examples("masked"),
            max_steps=4,
            per_device_train_batch_size=4,
            **{option: chosen},
        )
        run.train()
        curves.append(losses(run))
    tolerance = 2e-2 if option == "bf16" else 0.0
    assert curves[1] == pytest.approx(curves[0], rel=tolerance)
    assert curves[1] != curves[0] or option != "bf16"


# ---- gradients ----

N = 40
IDS, MASK = draw(2, N), (torch.arange(N) < torch.tensor([[N], [N - 15]])).long()
MARKED = torch.zeros(2, N, dtype=torch.int64)
MARKED[:, 0] = MARKED[0, 7] = 1
ETC = {"num_global_tokens": 4}
ETC_INPUTS = {"segment_ids": torch.arange(N).expand(2, N) // 10}
LONGFORMER = {"graph": lb.longformer(8), "global_projections": True}
GLOBALS = {"global_attention_mask": MARKED}
ENCODERS = {
    "bigbird": ({}, {}),
    "pre-norm": ({"norm": "pre"}, {}),
    "relative": ({"positions": "none", "relative_buckets": 8}, {}),
    "longformer": (LONGFORMER, GLOBALS),
    "etc": (ETC, ETC_INPUTS),
    "etc with projections": ({**ETC, "global_projections": True}, ETC_INPUTS),
    "etc of a fixed number": (ETC, {}),
}


def gradients(model: Any, **inputs: Any) -> tuple[float, dict[str, torch.Tensor | None]]:
    model.zero_grad()
    torch.manual_seed(3)
    loss = model(**inputs).loss
    loss.backward()
    return loss.item(), {name: p.grad for name, p in model.named_parameters()}


@pytest.mark.parametrize(("fields", "inputs"), ENCODERS.values(), ids=ENCODERS)
@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_changes_nothing(fields, inputs, reentrant):
    model = tiny(lb.LongbirdForMaskedLM, dropout=0.2, **fields).train()
    inputs = {"input_ids": IDS, "attention_mask": MASK, "labels": IDS, **inputs}
    loss, expected = gradients(model, **inputs)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    calls = []
    for layer in model.longbird.layers:
        layer.attention.register_forward_hook(lambda *_: calls.append(1))
    again, found = gradients(model, **inputs)
    assert len(calls) == 2 * len(model.longbird.layers)
    assert again == loss
    for name, gradient in expected.items():
        if reentrant:  # in another order of summing
            torch.testing.assert_close(found[name], gradient, msg=name)
        else:
            assert torch.equal(found[name], gradient), name


@pytest.mark.parametrize(("fields", "inputs"), ENCODERS.values(), ids=ENCODERS)
def test_autocast_is_close(fields, inputs):
    model = tiny(lb.LongbirdForMaskedLM, **fields)
    inputs = {"input_ids": IDS, "attention_mask": MASK, "labels": IDS, **inputs}
    loss, expected = gradients(model, **inputs)
    with torch.autocast("cpu", torch.bfloat16):
        again, found = gradients(model, **inputs)
        assert model(**inputs).logits.dtype == torch.bfloat16
    assert again == pytest.approx(loss, rel=2e-2)
    for name, gradient in found.items():
        assert gradient.isfinite().all(), name
    angle = torch.nn.functional.cosine_similarity(
        *(torch.cat([g.flatten() for g in each.values()]) for each in (found, expected)), dim=0
    )
    assert angle > 0.99


@pytest.mark.parametrize(
    "name", ["token_type_ids", "position_ids", "global_attention_mask", "labels"]
)
@pytest.mark.parametrize("mask", [MASK, None], ids=["padded", "whole"])
def test_an_input_of_another_shape_is_refused(name, mask):
    """Rather than taken from wrong places."""
    model = tiny(lb.LongbirdForMaskedLM, **LONGFORMER)
    with pytest.raises(ValueError, match="shape of the batch"):
        model(IDS, attention_mask=mask, **{name: torch.ones(2, N - 1, dtype=torch.int64)})


QUESTION = IDS.clone()
QUESTION[:, 5] = QUESTION[:, 6] = QUESTION[:, 20] = SEP
ANSWER = {"start_positions": torch.tensor([9, 12]), "end_positions": torch.tensor([9, 15])}
SENTENCES = {
    "answer_types": torch.tensor([0, 2]),
    "sentence_positions": torch.tensor([[3, 8], [9, -1]]),
    "sentence_support": torch.tensor([[0, 1], [1, 0]]),
}
HEADS = {
    **TASKS,
    "pretraining": (lb.LongbirdForPreTraining, {}),
    "full answer": (
        lb.LongbirdForQuestionAnswering,
        {"qa_feed_forward": True, "num_answer_types": 3, "supporting_sentences": True},
    ),
}


@pytest.mark.parametrize("encoder", ["bigbird", "longformer", "etc with projections"])
@pytest.mark.parametrize("task", [task for task in HEADS if task != "causal"])
def test_every_parameter_has_a_gradient(task, encoder):
    """Without one, DistributedDataParallel would wait for it."""
    model_class, fields = HEADS[task]
    model = tiny(model_class, **fields, **ENCODERS[encoder][0])
    if task == "full answer":
        inputs = {"input_ids": QUESTION, **ANSWER, **SENTENCES}
    elif task == "answer":
        inputs = {"input_ids": QUESTION, **ANSWER}
    else:
        batch = examples(task, count=2, n=N)
        inputs = {name: torch.stack([each[name] for each in batch]) for name in batch[0]}
        if task == "choice":
            inputs["input_ids"] = torch.stack([QUESTION, QUESTION])
        if encoder == "longformer" and task not in ("choice", "one label", "labels", "number"):
            inputs.update(GLOBALS)
    _, found = gradients(model, **inputs)
    assert not [name for name, gradient in found.items() if gradient is None]
    if task == "masked":  # a loss that all tokens of the last layer are in
        without = {
            name.rpartition(".")[0] for name, gradient in found.items() if not gradient.any()
        }
        # Nobody looks at the global tokens of the last layer.
        unseen = {"longbird.layers.1.attention.query_global"} if "etc" in encoder else set()
        assert without == unseen


def test_every_parameter_of_a_decoder_has_a_gradient():
    model_class, fields = TASKS["causal"]
    _, found = gradients(tiny(model_class, **fields), input_ids=IDS, labels=IDS)
    assert all(gradient is not None and gradient.any() for gradient in found.values())


def test_longformer_without_global_tokens_has_no_use_for_their_projections():
    """The exception: DistributedDataParallel then needs find_unused_parameters=True."""
    model = tiny(lb.LongbirdForMaskedLM, **LONGFORMER)
    _, found = gradients(model, input_ids=IDS, labels=IDS)
    without = [name for name, gradient in found.items() if gradient is None]
    assert len(without) == 12
    assert all("_global." in name for name in without)


# ---- pipelines ----


@contextlib.contextmanager
def quiet():
    """No progress bars of transformers among the dots of the tests."""
    transformers.utils.logging.disable_progress_bar()
    yield
    transformers.utils.logging.enable_progress_bar()


PIPELINES = {
    "fill-mask": (lb.LongbirdForMaskedLM, transformers.AutoModelForMaskedLM),
    "text-classification": (
        lb.LongbirdForSequenceClassification,
        transformers.AutoModelForSequenceClassification,
    ),
    "token-classification": (
        lb.LongbirdForTokenClassification,
        transformers.AutoModelForTokenClassification,
    ),
    "feature-extraction": (lb.LongbirdModel, transformers.AutoModel),
    "text-generation": (lb.LongbirdForCausalLM, transformers.AutoModelForCausalLM),
}


@pytest.mark.parametrize("task", PIPELINES)
def test_pipelines_of_a_saved_model(task, tmp_path):
    """What a pipeline says is what the model says of each text alone, whatever the batch."""
    model_class, auto = PIPELINES[task]
    words = tokenizer()
    graph = lb.Window(4) if task == "text-generation" else lb.bigbird(block=4, random=1)
    model = tiny(model_class, num_labels=3, graph=graph).eval()
    texts = ["the [MASK] sat on a mat", "a very good dog ran and slept under the [MASK] and sat"]
    with quiet():
        model.save_pretrained(tmp_path)
        words.save_pretrained(tmp_path)
        again = auto.from_pretrained(tmp_path)
        assert type(again) is model_class
        assert again.config.layer_graphs == model.config.layer_graphs
        for name, tensor in model.state_dict().items():
            assert torch.equal(again.state_dict()[name], tensor), name
        read = transformers.AutoTokenizer.from_pretrained(tmp_path)
        assert read(texts)["input_ids"] == words(texts)["input_ids"]
        options = {}
        if task == "text-generation":
            read.padding_side = "left"
            options = {"max_new_tokens": 5, "do_sample": False, "return_full_text": False}
        pipeline = transformers.pipeline(task, model=again, tokenizer=read, **options)
        found = pipeline(texts, batch_size=2)
    for text, result in zip(texts, found, strict=True):
        inputs = words(text, return_tensors="pt")
        with torch.no_grad():
            expected = model(**inputs)
        match task:
            case "fill-mask":
                place = int((inputs["input_ids"][0] == words.mask_token_id).nonzero())
                p = expected.logits[0, place].softmax(-1)
                best = p.topk(5)
                assert [entry["token"] for entry in result] == best.indices.tolist()
                assert [entry["score"] for entry in result] == pytest.approx(best.values.tolist())
            case "text-classification":
                p = expected.logits[0].softmax(-1)
                assert result["label"] == f"LABEL_{int(p.argmax())}"
                assert result["score"] == pytest.approx(float(p.max()))
            case "token-classification":
                p = expected.logits[0].softmax(-1)
                for entry in result:
                    assert entry["score"] == pytest.approx(float(p[entry["index"]].max()))
                    assert entry["word"] == text.split()[entry["index"] - 1]
                assert len(result) == len(text.split())
            case "feature-extraction":
                states = torch.tensor(result)[:, : inputs["input_ids"].shape[1]]
                torch.testing.assert_close(states, expected.last_hidden_state)
            case _:
                new = model.generate(**inputs, max_new_tokens=5, do_sample=False)[0, -5:]
                written = words.decode(new, skip_special_tokens=True)
                assert result[0]["generated_text"].split() == written.split()


def test_zero_shot_classification():
    names = ["contradiction", "neutral", "entailment"]
    model = tiny(
        lb.LongbirdForSequenceClassification,
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    ).eval()
    words = tokenizer()
    pipeline = transformers.pipeline("zero-shot-classification", model=model, tokenizer=words)
    template = "the {} sat"
    found = pipeline("a very good day", ["cat", "dog"], hypothesis_template=template)
    with torch.no_grad():
        logits = torch.stack(
            [
                model(**words("a very good day", template.format(label), return_tensors="pt"))
                .logits[0, 2]
                for label in found["labels"]
            ]
        )  # fmt: skip
    assert found["scores"] == pytest.approx(logits.softmax(-1).tolist(), rel=1e-5)
