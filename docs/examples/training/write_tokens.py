import numpy as np


def write_tokens(documents, tokenizer, path):
    """`documents`: texts; `tokenizer.encode`: a text to token ids."""
    with open(path, "wb") as file:
        for text in documents:
            tokens = [*tokenizer.encode(text), tokenizer.eos_token_id]
            np.array(tokens, dtype=np.uint16).tofile(file)
