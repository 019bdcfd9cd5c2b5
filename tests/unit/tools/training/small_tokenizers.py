"""Tokenizers for tests, trained on two sentences in no time."""

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

_TEXTS = ["the quick brown fox jumps over the lazy dog", "Wie geht es dir? Gut, danke, und dir?"] * 20


def made(folder: Path, *, llama: bool = False, template: str | None = None) -> Path:
    """A small tokenizer: of bytes as GPT-2's and Qwen's, or with a token before each text as Llama's."""
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>", "</s>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(_TEXTS, trainer)
    if llama:
        begin = tokenizer.token_to_id("<s>")
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", begin)]
        )
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"eos_token": {"content": "</s>"}, "bos_token": "<s>", "chat_template": template}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    return folder
