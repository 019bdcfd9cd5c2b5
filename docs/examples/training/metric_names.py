from training.metrics import METRIC_DEFINITIONS

names = [one["Name"] for one in METRIC_DEFINITIONS]
assert names[:3] == ["train:step", "train:loss", "train:lr"]
assert {"train:goodput", "train:width"} <= set(names)
assert names[-3:] == ["validation:loss", "validation:perplexity", "validation:accuracy"]
