"""What it saves to score answers together: 1,024 of them by a three-head classifier and two text measures.

The classifier is tiny, so this is what calls cost: a large one on a CPU takes as long for a text in a batch as alone.

python benchmarks/rewards.py [--json]
"""

import sys
import tempfile
from random import Random

from timing import seconds, show
from vpo.rewards import Item, Json, Length, Vector

ANSWERS = 1024
WORDS = ["one", "of", "seven", "little", "words", "repeated", "often"]
HEADS = ["helpful", "honest", "harmless"]


def save_classifier(folder: str) -> None:
    """Save a random encoder of two layers with three heads, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    known = {word: place for place, word in enumerate(["<pad>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", model_max_length=256
    ).save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(known), max_position_embeddings=256, num_labels=3, **shape)
    BertForSequenceClassification(config).save_pretrained(folder)


def items() -> list[Item]:
    draw = Random(0)
    answers = [" ".join(draw.choices(WORDS, k=draw.randint(5, 40))) for _ in range(ANSWERS)]
    return [Item("p", [{"role": "user", "content": "Write."}], answer) for answer in answers]


def measures() -> list[object]:
    """Return length and readability; a format in place of the latter where textstat is not there."""
    from vpo.errors import InputError
    from vpo.rewards import Readability

    try:
        return [Length("short", most=30), Readability("plain")]
    except InputError as error:
        print(f"json is timed, not readability: {error}", file=sys.stderr)
        return [Length("short", most=30), Json("json")]


def figures() -> list[tuple[str, float, str]]:
    from vpo.rewards.models import Classifier

    with tempfile.TemporaryDirectory() as folder:
        save_classifier(folder)
        classifier = Classifier("quality", model=folder, heads=HEADS, calibration={"range": [-4, 4]})
        vector = Vector(classifier, *measures())
        answers = items()
        together = seconds(lambda: vector.score(answers), repeats=7)
        apart = seconds(lambda: [vector.score([answer]) for answer in answers], repeats=2)
    return [
        (f"answers of 5 to 40 words a second, {ANSWERS:,} together", ANSWERS / together, ""),
        ("times those one by one", apart / together, "at least 5"),
    ]


if __name__ == "__main__":
    show(__doc__, figures)
