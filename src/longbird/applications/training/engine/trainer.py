"""transformers' Trainer, so that a run can be stopped at any moment and nothing is lost.

Every random number of a step is a function of the seed, the step and the process alone: the order
of documents, dropout, masks. So a run that goes on from any checkpoint ends with the same weights
as one that was never stopped, and no state of a generator is kept.
"""

# transformers writes its types more narrowly than its classes are.
# pyright: reportArgumentType=false, reportIncompatibleMethodOverride=false
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.tensorboard.writer import SummaryWriter
from transformers import (
    EarlyStoppingCallback,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer import OPTIMIZER_NAME, SCHEDULER_NAME, TRAINER_STATE_NAME
from transformers.trainer_callback import ExportableState
from transformers.utils import SAFE_WEIGHTS_NAME

from longbird.applications.training.data.batches import TokenBatches
from longbird.applications.training.data.token_store import (
    Collator,
    DocumentDataset,
    without_bookkeeping,
)
from longbird.applications.training.engine.prediction import predict
from longbird.applications.training.engine.processes import backend, shares_weights
from longbird.applications.training.engine.run_folder import RunFolder
from longbird.applications.training.engine.sharded_weights import (
    load_optimizer,
    load_weights,
    whole,
)
from longbird.applications.training.settings.groups import Settings
from longbird.applications.training.tasks.task import Task


class NotFinite(ValueError):
    """The loss is not a number."""


class LongbirdTrainer(Trainer):
    """Trains with batches by tokens, and saves checkpoints all or nothing."""

    def __init__(
        self,
        model: Any,
        task: Task,
        tokenizer: Any,
        train: Dataset,
        validation: Dataset | None,
        settings: Settings,
        folder: RunFolder,
        weights: Tensor | None = None,
        callbacks: list[TrainerCallback] | None = None,
    ) -> None:
        self.task, self.folder, self.settings, self.weights = task, folder, settings, weights
        self.rows, self.validation = train, validation
        self.documents = DocumentDataset(task, train)
        self.micro_step, self.interruptions = 0, Interruptions(self)
        patience = [EarlyStoppingCallback(settings.patience)] if settings.patience else []
        super().__init__(
            model=model,
            args=training_arguments(settings, folder, task, validation is not None),
            train_dataset=self.documents,
            eval_dataset=validation,
            processing_class=tokenizer,
            data_collator=Collator(task, tokenizer),
            callbacks=[self.interruptions, *patience, *(callbacks or [])],
        )
        self.loss_is_scaled_for_ga = True
        self.remove_callback(PrinterCallback)  # MetricLog and Progress say it

    # ---- data

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The share of this process in the batches; accelerate would share whole batches."""
        batches = TokenBatches(
            self.documents.lengths,
            self.settings.tokens_per_batch,
            self.settings.seed,
            self._epoch,
            self.args.process_index,
            self.args.world_size,
            self.task.new_batches,
        )
        self.steps_in_epoch = -(-len(batches) // self.settings.accumulate)
        return DataLoader(self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator)

    def _epoch(self) -> int:
        return self.state.global_step // self.steps_in_epoch

    def get_batch_samples(
        self, epoch_iterator: Iterator[Any], num_batches: int, device: torch.device
    ) -> tuple[list[Any], Tensor]:
        """The batches of a step, and the number of items in them over all processes."""
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        self.micro_step, self.numbers = 0, []
        items: Any = torch.stack([batch["items"] for batch in batches]).sum().to(device)
        total: Any = self.accelerator.reduce(items, "sum")
        return batches, total.clamp(min=1)

    # ---- a step

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any) -> Tensor:
        """Forward and backward, with the random numbers of this step."""
        self.numbers += inputs["numbers"].tolist()
        key = (
            self.settings.seed,
            self.state.global_step,
            self.micro_step,
            self.args.process_index,
        )
        torch.manual_seed(_mixed(*key))
        self.micro_step += 1
        loss = super().training_step(model, inputs, num_items_in_batch)
        bad = not torch.isfinite(loss)
        if self.agree(bad):
            self._refuse(f"the loss of step {self.state.global_step + 1} is {float(loss)}", bad)
        return loss

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """Before the weights are changed by it: a loss may be finite where its gradient is not."""
        norm = super()._get_grad_norm(model, grad_norm)
        if not math.isfinite(norm):
            step = self.state.global_step + 1
            self._refuse(f"the gradient of step {step} is {float(norm)}", True)
        return norm

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **kwargs: Any
    ) -> Any:
        """The share of this batch in the mean over all items of the step."""
        batch = without_bookkeeping(inputs)
        outputs = self.task.run(model, batch)
        loss = self.task.loss(outputs, batch, self.weights)
        total = kwargs["num_items_in_batch"].clamp(min=1)  # windows may have no label
        # The gradients of processes are averaged, and are shares of a sum here.
        loss = loss * inputs["items"] / total * self.args.world_size
        return (loss, outputs) if return_outputs else loss

    def _refuse(self, what: str, mine: bool) -> None:
        """Keeps the weights as they were before this step, and stops: all processes do.

        Args:
            what: Is not finite.
            mine: Is it that of documents of this process?
        """
        found = [(what, number) for number in self.numbers] if mine else []
        if self.args.world_size > 1:
            found = gather_object(found)
        rows = [int(self.documents.row_of[max(each, ~each)]) for _, each in found[:5]]
        places = [self.rows[row]["place"] for row in rows]
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        self._save_checkpoint(self.model, None)
        kept = self.folder.checkpoint(self.state.global_step)
        raise NotFinite(
            f"{found[0][0]}, for the documents {'; '.join(places)}{more}. The weights before it "
            f"are kept in {kept}. A lower `learning_rate` or a longer `warmup` may help, with "
            "another `out`; or look at these documents"
        )

    # ---- evaluation

    def evaluate(
        self, eval_dataset: Any = None, ignore_keys: Any = None, metric_key_prefix: str = "eval"
    ) -> dict[str, float]:
        """The metrics of the task on the validation documents."""
        started = time.perf_counter()
        model: Any = self.model
        rows: Any = self.validation
        model.eval()
        with self.compute_loss_context_manager():
            said = predict(
                model, self.task, rows, self.processing_class, self.settings.tokens_per_batch,
                learning=True,
            )  # fmt: skip
        model.train()
        examples = rows.remove_columns([*self.task.on_disk])
        measured = self.task.measure(*self.task.whole_documents(examples, said))
        measured["seconds"] = time.perf_counter() - started
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in measured.items()}
        self.log({name: value for name, value in metrics.items() if isinstance(value, float)})
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        self.control.should_save = True  # so that the best model is always that of a checkpoint
        return metrics

    # ---- checkpoints

    def _determine_best_metric(self, metrics: dict[str, float], trial: Any) -> bool:
        """Of equally good models the last: it has learned longer, and its scores are surer."""
        best, name = self.state.best_metric, self.args.metric_for_best_model
        better = super()._determine_best_metric(metrics, trial)
        if name is not None and metrics[name] == best:
            self.state.best_global_step = self.state.global_step
        return better

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """All that is needed to go on, all or nothing; Trainer writes it in place."""
        main, step = self.is_world_process_zero(), self.state.global_step
        with contextlib.ExitStack() as stack:
            path = None
            if main:
                path = stack.enter_context(self.folder.writing_checkpoint(step))
            path = path or self.folder.checkpoints / f".saving-{step}"
            self.accelerator.wait_for_everyone()
            self.save_model(str(path), _internal_call=True)
            self._save_optimizer_and_scheduler(str(path))
            self._save_scaler(str(path))
            if main:
                states: Any = self.state.stateful_callbacks
                for callback in [*self.callback_handler.callbacks, self.control]:
                    if isinstance(callback, ExportableState):
                        states[type(callback).__name__] = callback.state()
                self.state.save_to_json(str(path / TRAINER_STATE_NAME))
            self.accelerator.wait_for_everyone()
        if main:
            self.folder.prune({self.state.best_global_step or -1})
        self.accelerator.wait_for_everyone()

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """The weights; whole, if processes share them out."""
        if not self.is_fsdp_enabled:
            return super().save_model(output_dir, _internal_call)
        weights = whole(self.model.state_dict())
        if self.args.should_save:
            self._save(output_dir, weights)

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not self.is_fsdp_enabled:
            return super()._save_optimizer_and_scheduler(output_dir)
        state = whole(self.optimizer.state_dict())
        if self.args.should_save:
            torch.save(state, Path(output_dir, OPTIMIZER_NAME))
            torch.save(self.lr_scheduler.state_dict(), Path(output_dir, SCHEDULER_NAME))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if not self.is_fsdp_enabled:
            return super()._load_from_checkpoint(resume_from_checkpoint, model)
        weights = safetensors.torch.load_file(Path(resume_from_checkpoint, SAFE_WEIGHTS_NAME))
        load_weights(model or self.model, weights)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if not self.is_fsdp_enabled or checkpoint is None:
            return super()._load_optimizer_and_scheduler(checkpoint)
        load_optimizer(self.optimizer, _load(checkpoint, OPTIMIZER_NAME))
        self.lr_scheduler.load_state_dict(_load(checkpoint, SCHEDULER_NAME))

    def has_ended(self, checkpoint: Path) -> bool:
        """Is a checkpoint the end of the run, so that only its result is missing? Then goes there.

        Trainer would begin another epoch.
        """
        state = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
        stopping: Any = state.stateful_callbacks.get(EarlyStoppingCallback.__name__)
        tried = stopping["attributes"]["early_stopping_patience_counter"] if stopping else 0
        self.get_train_dataloader()  # counts the steps of an epoch
        epochs = math.ceil(self.settings.epochs * self.steps_in_epoch)
        ended = state.global_step >= (self.settings.steps or epochs) or (
            bool(stopping) and (tried >= self.settings.patience)
        )
        if ended:
            self.state = state
        return ended

    def agree(self, wanted: bool) -> bool:
        """Does any process want it? All get the same answer."""
        if self.args.world_size == 1:
            return wanted
        asked: Any = torch.tensor(float(wanted), device=self.args.device)
        return bool(self.accelerator.reduce(asked, "sum"))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        """There is none: see the top of the file."""


class Interruptions(TrainerCallback):
    """Saves every few minutes, and when somebody asks the run to stop."""

    def __init__(self, trainer: LongbirdTrainer) -> None:
        self.trainer = trainer
        self.asked, self.stopping = False, False  # of this process, and of all
        self.saved = time.monotonic()

    @contextlib.contextmanager
    def listening(self) -> Generator[None, None, None]:
        """Lets Ctrl-C and SIGTERM end the run after its step; a second Ctrl-C ends it at once."""

        def stop(number: int, _frame: Any) -> None:
            if self.asked and number == signal.SIGINT:
                raise KeyboardInterrupt
            self.asked = True

        before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """After a step. The evaluation after an epoch belongs to its last, and comes first."""
        saves = not self._evaluates_now(args, state)
        due = time.monotonic() - self.saved > self.trainer.settings.save_every
        if self.trainer.agree(self.asked):
            self.stopping = control.should_training_stop = True
            control.should_save = saves
        elif saves and self.trainer.agree(due):
            control.should_save = True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """A run that is asked to stop ends its epoch early, and then has nothing to evaluate."""
        if self.stopping and not self._evaluates_now(args, state):
            control.should_evaluate = control.should_save = False
        return control

    def _evaluates_now(self, args: Any, state: Any) -> bool:
        """Is this the last step of an epoch, after which it is evaluated, and saved?"""
        last = state.global_step % self.trainer.steps_in_epoch == 0
        return args.eval_strategy == "epoch" and (last or state.global_step >= state.max_steps)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """After a checkpoint."""
        self.saved = time.monotonic()


class MetricLog(TrainerCallback):
    """Writes what is measured into the folder of the run, and tells `say` of it."""

    def __init__(self, folder: RunFolder, say: Callable[[dict[str, Any]], None]) -> None:
        self.folder, self.say = folder, say

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Opens TensorBoard's log, which forgets what came after this step."""
        if state.is_world_process_zero:
            place = str(self.folder.tensorboard)
            self.board = SummaryWriter(place, purge_step=state.global_step + 1)
            self.folder.cut_metrics(state.global_step)
            self.began = time.time()  # tells processes apart

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Closes it."""
        if state.is_world_process_zero:
            self.board.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """What Trainer logs."""
        if state.is_world_process_zero and "train_loss" not in logs:
            line = {
                "step": state.global_step,
                "epoch": state.epoch,
                **logs,
                "began_seconds": self.began,
            }
            self.folder.log(line)
            for name, value in logs.items():
                self.board.add_scalar(name, value, state.global_step)
            self.say(line)


def training_arguments(
    settings: Settings, folder: RunFolder, task: Task, evaluates: bool
) -> TrainingArguments:
    """The settings as Trainer has them."""
    strategy = "no" if not evaluates else "steps" if settings.evaluate_every else "epoch"
    return TrainingArguments(
        output_dir=str(folder.path),
        per_device_train_batch_size=1,  # the batches are our own
        gradient_accumulation_steps=settings.accumulate,
        num_train_epochs=settings.epochs,
        max_steps=settings.steps or -1,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="constant_with_warmup"
        if settings.schedule == "constant"
        else settings.schedule,
        warmup_steps=settings.warmup,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.clip,
        bf16=settings.bf16,
        gradient_checkpointing=settings.gradient_checkpointing,
        seed=settings.seed,
        data_seed=settings.seed,
        eval_strategy=strategy,
        eval_steps=settings.evaluate_every or None,
        metric_for_best_model=f"eval_{task.best}" if evaluates else None,
        greater_is_better=task.more_is_better,
        save_strategy="steps",
        save_steps=2**31,  # Interruptions says when
        logging_steps=1,
        logging_nan_inf_filter=False,
        include_num_input_tokens_seen="non_padding",
        restore_callback_states_from_checkpoint=True,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
        dataloader_pin_memory=torch.cuda.is_available(),
        use_cpu=not torch.cuda.is_available(),
        ddp_backend=backend(),
        accelerator_config={"use_configured_state": shares_weights()},  # that of processes()
    )


def _load(checkpoint: str, name: str) -> Any:
    """Read a file of tensors and numbers, which cannot contain code."""
    return torch.load(Path(checkpoint, name), weights_only=True)


def _mixed(*numbers: int) -> int:
    """A seed from several numbers, such that neighbours have nothing in common."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)
