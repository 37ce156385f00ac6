"""The model card of a trained model: what it is, and how to prompt it with transformers alone."""

from pathlib import Path

from vpo.models.forced_tags import tags_of
from vpo.models.prompt_format import PromptFormat
from vpo.tasks import get
from vpo.training.config import TrainConfig
from vpo.util.files import write_text

CARD = """\
---
library_name: transformers
tags: [vpo, {method}]
---
# {task}, trained with {method}

{steps} steps from `{model}`; each prompt asks for {answers}. `vpo.json` holds the prompt format.{begun} Without vpo \
installed:

```python
import json
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = Path("{folder}")
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
messages = json.loads((folder / "vpo.json").read_text())["example"]
prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False, enable_thinking=False)
{prefill}inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=False, return_token_type_ids=False)
output = model.generate(**inputs, do_sample=True, temperature=0.7, max_new_tokens={tokens})
print(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))
```
"""


def write_card(folder: Path, config: TrainConfig, prompt_format: PromptFormat, steps: int) -> None:
    """Write the model card of a model after some steps as README.md."""
    assert config.max_tokens is not None
    opening = (
        tags_of(get(config.task, **config.task_settings), prompt_format.answers)[0][0] if prompt_format.prefill else ""
    )
    text = CARD.format(
        task=config.task,
        method=config.method,
        steps=steps,
        model=config.model,
        answers="1 answer" if prompt_format.answers == 1 else f"{prompt_format.answers} answers",
        folder="path/to/model",
        tokens=config.max_tokens * prompt_format.answers,
        begun=f" Completions were begun with `{opening}`, the tag of the first answer." if opening else "",
        prefill=f'prompt += "{opening}"\n' if opening else "",
    )
    write_text(folder / "README.md", text)
