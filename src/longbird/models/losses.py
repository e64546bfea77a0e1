"""Labels are looked at before they are learned from; losses that transformers has not.

Labels of -100 do not count.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from longbird.nn.checks import IGNORED, check_integers, check_labels


def prediction_loss(
    logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None = None
) -> Tensor:
    """Mean cross-entropy of [..., vocabulary] over the labels that are not -100; 0 without any."""
    if logits.shape[:-1] != labels.shape:
        raise ValueError(
            f"labels must be of shape {list(logits.shape[:-1])}, received {list(labels.shape)}"
        )
    check_labels("labels", labels, logits.shape[-1], "the vocabulary")
    labels = labels.flatten().long()
    if num_items_in_batch is None:
        num_items_in_batch = (labels != IGNORED).sum().clamp(min=1)
    total = F.cross_entropy(logits.flatten(0, -2).float(), labels, reduction="sum")
    return total / num_items_in_batch


def class_loss(logits: Tensor, labels: Tensor, name: str = "labels") -> Tensor:
    """Mean cross-entropy of [rows, classes] over labels [rows]."""
    return F.cross_entropy(logits.float(), classes(labels, logits, name))


def classes(labels: Tensor, logits: Tensor, name: str = "labels") -> Tensor:
    """Labels [rows] of logits [rows, classes], once they are classes that there are."""
    if labels.numel() != len(logits):
        raise ValueError(f"{name} must be of shape [{len(logits)}], received {list(labels.shape)}")
    check_labels(name, labels, logits.shape[1], "the number of classes")
    return labels.flatten().long()


def document_loss(logits: Tensor, labels: Tensor, config: Any) -> Tensor:
    """The loss of documents, by `problem_type`, or by the type of the labels where it is None.

    transformers writes what it has guessed into the configuration, and takes it for granted in
    every later call; here a call says nothing about the next.
    """
    problem = config.problem_type
    if problem is None and config.num_labels == 1:
        problem = "regression"
    elif problem is None and not labels.is_floating_point() and labels.dtype != torch.bool:
        problem = "single_label_classification"
    if problem == "single_label_classification":
        return class_loss(logits, labels)
    if problem == "regression":
        if labels.shape != logits.shape and labels.shape != logits.squeeze(-1).shape:
            raise ValueError(
                f"labels must be numbers of shape {list(logits.shape)}, received "
                f"{list(labels.shape)}"
            )
        return F.mse_loss(logits, labels.reshape(logits.shape).to(logits.dtype))
    if labels.shape != logits.shape:
        raise ValueError(
            "labels of several classes must be 0.0 or 1.0 and of shape [batch, num_labels] = "
            f"{list(logits.shape)}, received {list(labels.shape)}; for one class of each document "
            "give integers [batch]"
        )
    return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))


def check_answers(start_positions: Tensor, end_positions: Tensor, rows: int) -> None:
    """Raises unless there are two columns for each document; those beyond it do not count."""
    for name, given in (("start_positions", start_positions), ("end_positions", end_positions)):
        check_integers(name, given)
        if given.numel() != rows:
            raise ValueError(
                f"{name} must be of shape [batch] = [{rows}], received {list(given.shape)}"
            )
