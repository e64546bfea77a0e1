"""Losses over the labels that count, and checks of these labels.

Labels of -100 do not count. If no label counts, the loss and its gradient are 0; in transformers
they are NaN, and one such batch would ruin a training run.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.errors import InvalidValueError
from longbird.models.config import LongbirdConfig
from longbird.models.layers.checks import (
    IGNORED,
    check_integers,
    check_labels,
    check_shares,
    check_tensor,
    readable,
)
from longbird.models.outputs import Floats


def prediction_loss(
    logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None = None
) -> Floats:
    """Return the mean cross-entropy of [..., vocabulary] over the labels [...] that count."""
    check_tensor("labels", labels)
    if logits.shape[:-1] != labels.shape:
        raise InvalidValueError(
            f"labels must be of shape {list(logits.shape[:-1])}, received {list(labels.shape)}"
        )
    check_labels("labels", labels, logits.shape[-1], "the vocabulary")
    labels = beside(logits, labels, "labels").flatten().long()
    return mean_cross_entropy(logits.flatten(0, -2), labels, num_items_in_batch)


def class_loss(
    logits: Tensor,
    labels: Tensor,
    name: str = "labels",
    num_items_in_batch: Tensor | int | None = None,
) -> Floats:
    """Mean cross-entropy of [rows, classes] over the labels [rows] that count."""
    check_tensor(name, labels)
    if labels.numel() != len(logits):
        raise InvalidValueError(
            f"{name} must be of shape [{len(logits)}], received {list(labels.shape)}"
        )
    check_labels(name, labels, logits.shape[1], "the number of classes")
    labels = beside(logits, labels, name).flatten().long()
    return mean_cross_entropy(logits, labels, num_items_in_batch)


def token_loss(
    logits: Tensor,
    labels: Tensor,
    config: LongbirdConfig,  # noqa: ARG001
    num_items_in_batch: Tensor | int | None = None,
) -> Floats:
    """Return `class_loss` of tokens; the arguments are those of loss functions of transformers."""
    return class_loss(logits, labels, num_items_in_batch=num_items_in_batch)


def answer_loss(
    start: Tensor, end: Tensor, start_positions: Tensor, end_positions: Tensor
) -> Floats:
    """Return the mean cross-entropy of both ends [rows, n] of an answer.

    As in transformers, an end at column n or beyond it, which was cut off, does not count, and
    neither does -100.
    """
    rows, n = start.shape
    losses: list[Tensor] = []
    for name, logits, given in (
        ("start_positions", start, start_positions),
        ("end_positions", end, end_positions),
    ):
        check_integers(name, given)
        if given.shape not in ((rows,), (rows, 1)):
            raise InvalidValueError(
                f"{name} must be of shape [batch] = [{rows}], received {list(given.shape)}"
            )
        if readable(given) and bool((odd := (given < 0) & (given != IGNORED)).any()):
            raise InvalidValueError(
                f"{name} must be columns of the batch, from 0 on, or {IGNORED} for what does not "
                f"count; received {given[odd][0].item()}"
            )
        column = beside(logits, given, name).flatten().long()
        column = column.masked_fill((column >= n) | (column < 0), IGNORED)
        losses.append(mean_cross_entropy(logits, column))
    return (losses[0] + losses[1]) / 2


def document_loss(logits: Tensor, labels: Tensor, config: LongbirdConfig) -> Floats:
    """Return the loss of documents, by `problem_type` or, if that is None, by the type of labels.

    transformers stores its guess in the configuration, where it decides all later calls. Here each
    call is decided by its own labels.
    """
    check_tensor("labels", labels)
    problem = config.problem_type
    if problem is None and config.num_labels == 1:
        problem = "regression"
    elif problem is None and not labels.is_floating_point() and labels.dtype != torch.bool:
        problem = "single_label_classification"
    if problem == "single_label_classification":
        return class_loss(logits, labels)
    if problem == "regression":
        if labels.shape != logits.shape and labels.shape != logits.squeeze(-1).shape:
            raise InvalidValueError(
                f"labels must be numbers of shape {list(logits.shape)}, received "
                f"{list(labels.shape)}"
            )
        labels = beside(logits, labels, "labels").reshape(logits.shape).to(logits.dtype)
        return F.mse_loss(logits, labels) if len(logits) else logits.sum()
    if labels.shape != logits.shape:
        raise InvalidValueError(
            "labels of several classes must be 0.0 or 1.0 and of shape [batch, num_labels] = "
            f"{list(logits.shape)}, received {list(labels.shape)}; for one class of each document "
            "give integers [batch]"
        )
    check_shares("labels of several classes", labels)
    labels = beside(logits, labels, "labels").to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, labels) if len(logits) else logits.sum()


def mark_loss(logits: Tensor, marks: Tensor, counted: Tensor, name: str) -> Floats:
    """Return the mean binary cross-entropy of logits over the counted marks of 0 and 1."""
    check_tensor(name, marks)
    if marks.shape != logits.shape:
        raise InvalidValueError(
            f"{name} must be of the shape of the logits, {list(logits.shape)}, received "
            f"{list(marks.shape)}"
        )
    wanted = beside(logits, marks, name)[counted]
    check_shares(name, wanted)
    total = F.binary_cross_entropy_with_logits(
        logits[counted], wanted.to(logits.dtype), reduction="sum"
    )
    return total / max(len(wanted), 1)


def mean_cross_entropy(
    logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None = None
) -> Tensor:
    """Return the cross-entropy of logits [t, classes], divided by the number of labels that count.

    The `Trainer` gives that number if it accumulates several batches.
    """
    if len(logits) == 0 or logits.shape[1] == 0:  # no label can count
        return logits.sum().float()
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    count = count.to(logits.device).clamp(min=1) if isinstance(count, Tensor) else max(count, 1)
    return F.cross_entropy(logits.float(), labels, ignore_index=IGNORED, reduction="sum") / count


def beside(logits: Tensor, labels: Tensor, name: str) -> Tensor:
    """Move labels to the device of the logits, which may differ in a model that is split."""
    if labels.is_meta and not logits.is_meta:
        raise InvalidValueError(
            f"{name} must have values, received a tensor on the meta device; move it to "
            f"{logits.device}"
        )
    return labels.to(logits.device)
