"""Train a small byte-level tokenizer and save it as transformers does: `python peer_tokenizer.py FOLDER`."""

import random
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

WORDS = ("time", "year", "people", "way", "day", "man", "thing", "life", "child", "world", "school", "state", "family")


def main(folder: str) -> None:
    """Train and save."""
    random.seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(random.choices(WORDS, k=50)) for _ in range(200)], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    fast.save_pretrained(folder)


if __name__ == "__main__":
    main(sys.argv[1])
