"""The files of a model in a folder, checked before anything loads them: other packages raise whatever they like."""

from pathlib import Path

from vpo.util.errors import InputError, one_line
from vpo.util.stored import read_object

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")  # a folder with a tokenizer has one of them
ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def check_model_files(folder: Path, *, needed: tuple[str, ...] = ()) -> None:
    """Refuse a folder that lacks a file of a model, or has one that was cut off or is not JSON; names the file.

    Args:
        folder: of a model.
        needed: further files that it must have.
    """
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: this is not the folder of a model: it has no config.json")
    if not has_tokenizer(folder):
        raise InputError(f"{folder}: this folder has no tokenizer, such as tokenizer.json")
    if not any(file for pattern in WEIGHTS for file in folder.glob(pattern)):
        raise InputError(f"{folder}: this folder has no weights, such as model.safetensors")
    for name in needed:
        if not (folder / name).is_file():
            raise InputError(f"{folder / name}: the file is missing from the model")
    for name in (*SETTINGS, *(path.name for path in folder.glob("*.index.json"))):
        if (folder / name).is_file() and not read_object(folder / name):
            raise InputError(f"{folder / name}: the file is damaged: it holds no settings")
    for path in sorted(folder.glob("*.safetensors")):
        _check_weights(path)


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder has a tokenizer."""
    return any(file for pattern in TOKENIZER_FILES for file in folder.glob(pattern))


def is_adapter(path: str | Path) -> bool:
    """Whether a folder has a LoRA adapter instead of a whole model."""
    return (Path(path) / ADAPTER_CONFIG).is_file() and not (Path(path) / "config.json").is_file()


def check_adapter_files(folder: Path) -> None:
    """Refuse a folder of an adapter with a file that is missing, was cut off or is not JSON; names the file."""
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise InputError(f"{folder / ADAPTER_WEIGHTS}: the file is missing from the adapter")
    if not read_object(folder / ADAPTER_CONFIG):
        raise InputError(f"{folder / ADAPTER_CONFIG}: the file is damaged: it holds no settings")
    _check_weights(folder / ADAPTER_WEIGHTS)


def check_whole(path: str, what: str) -> None:
    """Refuse an adapter where only a whole model will do."""
    if is_adapter(path):
        raise InputError(
            f"{what} needs a whole model, and {path} is a LoRA adapter: merge it first, see docs/training.md"
        )


def _check_weights(path: Path) -> None:
    """Refuse a file of weights whose header does not match its length; the weights are not read."""
    from safetensors import safe_open

    try:
        with safe_open(path, framework="numpy") as weights:
            if not weights.keys():
                raise InputError(f"{path}: the file holds no weights")
    except InputError:
        raise
    except Exception as error:  # safetensors has an error of its own, which is no OSError
        raise InputError(f"{path}: the file of weights is damaged ({one_line(error)})") from None
