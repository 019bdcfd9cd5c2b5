"""Carries what Lightning has logged and does not save: epoch means, monitored values, states of metrics.

Without them an epoch's mean covers only the steps after a resume, and a scheduler, ModelCheckpoint or
EarlyStopping that monitors a value finds none, or another one.
"""

from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.trainer.connectors.logger_connector.result import _Metadata, _ResultMetric, _Sync
from torchmetrics import Metric

_META = (
    "fx",
    "name",
    "prog_bar",
    "logger",
    "on_step",
    "on_epoch",
    "enable_graph",
    "add_dataloader_idx",
    "dataloader_idx",
    "metric_attribute",
)
_SHOWN = ("_callback_metrics", "_logged_metrics", "_progress_bar_metrics")
_COUNTERS = ("_last_global_step_saved", "_last_checkpoint_saved", "_defer_save_until_validation")
"""Attributes of ModelCheckpoint; a resume that loses them saves a step twice, or not at all."""


def taken_metrics(trainer: Trainer, module: LightningModule) -> dict[str, Any]:
    """Copy what is logged; tensors and plain values only."""
    connector = trainer._logger_connector
    return {
        "shown": {name: dict(getattr(connector, name)) for name in _SHOWN},
        "first_loop_iter": connector._first_loop_iter,
        "current_fx": connector._current_fx,
        "epoch": {key: _saved(metric) for key, metric in trainer.fit_loop.epoch_loop._results.items()},
        "modules": {name: _states(metric) for name, metric in _metrics_in(module)},
        "checkpoints": [_counters(callback) for callback in trainer.checkpoint_callbacks],
    }


def put_back_metrics(trainer: Trainer, module: LightningModule, taken: dict[str, Any]) -> None:
    """Set what ``taken_metrics`` copied, on this attempt's device."""
    connector = trainer._logger_connector
    for name, values in taken["shown"].items():
        setattr(connector, name, {key: _on(module.device, value) for key, value in values.items()})
    connector._first_loop_iter, connector._current_fx = taken["first_loop_iter"], taken["current_fx"]
    metrics = dict(_metrics_in(module))
    for name, states in taken["modules"].items():
        if name in metrics:
            _set_states(metrics[name], states, module.device)
    results = trainer.fit_loop.epoch_loop._results
    for key, saved in taken["epoch"].items():
        if saved["is_tensor"] or saved["meta"]["metric_attribute"] in metrics:
            results[key] = _restored(saved, trainer, metrics, module.device)
    for callback, counters in zip(trainer.checkpoint_callbacks, taken["checkpoints"], strict=False):
        vars(callback).update(counters)


def _counters(callback: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(callback).items() if name in _COUNTERS}


def _metrics_in(module: LightningModule) -> list[tuple[str, Metric]]:
    return [(name, part) for name, part in module.named_modules() if isinstance(part, Metric)]


def _saved(metric: Any) -> dict[str, Any]:
    sync = metric.meta.sync
    return {
        "meta": {name: getattr(metric.meta, name) for name in _META},
        "reduce_fx": metric.meta.reduce_fx.__name__,
        "sync": {"should": sync.should, "op": sync.op, "rank_zero_only": sync.rank_zero_only},
        "is_tensor": metric.is_tensor,
        "has_reset": metric.has_reset,
        "cache": metric._forward_cache if isinstance(metric._forward_cache, torch.Tensor) else None,
        "states": _states(metric) if metric.is_tensor else {},
    }


def _restored(saved: dict[str, Any], trainer: Trainer, metrics: dict[str, Metric], device: Any) -> Any:
    meta = _Metadata(**saved["meta"], reduce_fx=getattr(torch, saved["reduce_fx"]))
    sync = saved["sync"]
    meta.sync = _Sync(
        fn=trainer.strategy.reduce,
        _should=sync["should"],
        _op=sync["op"],
        rank_zero_only=sync["rank_zero_only"],
    )
    metric = _ResultMetric(meta, saved["is_tensor"])
    if saved["is_tensor"]:
        _set_states(metric, saved["states"], device)
    else:
        metric.value = metrics[saved["meta"]["metric_attribute"]]
    metric.has_reset, metric._forward_cache = saved["has_reset"], _on(device, saved["cache"])
    return metric.to(device)


def _states(metric: Metric) -> dict[str, Any]:
    states = {name: _copied(getattr(metric, name)) for name in metric._defaults}
    return {"values": states, "updates": metric._update_count}


def _set_states(metric: Metric, states: dict[str, Any], device: Any) -> None:
    for name, value in states["values"].items():
        setattr(metric, name, _on(device, value))
    metric._update_count, metric._computed = states["updates"], None


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(part) for part in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _on(device: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [_on(device, part) for part in value]
    return value.to(device) if isinstance(value, torch.Tensor) else value
