"""Make a Llama of under a million random weights with a tokenizer of its own: python tools/tiny_model.py FOLDER.

Run with the Python of an engine (torch, transformers, tokenizers). The same call makes the same files. It serves tests
and laptops: what it says means nothing.
"""

import argparse
import json
import sysconfig
from pathlib import Path

VOCABULARY = 2048
HIDDEN, LAYERS, HEADS = 128, 2, 2
CONTEXT = 4096
# With the usual 0.02 a random model of this size repeats its last token, whatever stood before. With this an answer
# depends on the whole prompt, so that wrong KV shows.
WEIGHT_DEVIATION = 0.1
TEMPLATE = (
    "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SPECIAL = ["<|unknown|>", "<|begin|>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]


def make_tokenizer(folder: Path) -> None:
    """Train byte-pair merges on the standard library's own text, so that nothing is downloaded."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    library = Path(sysconfig.get_paths()["stdlib"])
    files = [str(path) for path in sorted(library.glob("*.py"))[:60]]
    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train(files, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2]
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)


def make_weights(folder: Path) -> None:
    """Draw the weights from a fixed seed."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=CONTEXT,
        initializer_range=WEIGHT_DEVIATION,
        bos_token_id=1,
        eos_token_id=2,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def main() -> None:
    """Make the folder, unless it is there already."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if (folder / "done.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    make_tokenizer(folder)
    make_weights(folder)
    (folder / "done.json").write_text(json.dumps({"vocabulary": VOCABULARY, "hidden": HIDDEN, "layers": LAYERS}))


if __name__ == "__main__":
    main()
