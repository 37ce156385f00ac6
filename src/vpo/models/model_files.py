"""The files of a model in a folder, checked before anything loads them: other packages raise whatever they like."""

from pathlib import Path

from vpo.util.errors import InputError, one_line
from vpo.util.stored import read_object

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.tiktoken")  # a folder with a tokenizer has one of them
SETTINGS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def check_model_files(folder: Path, *, needed: tuple[str, ...] = ()) -> None:
    """Refuse a folder that lacks a file of a model, or has one that was cut off or is not JSON; names the file.

    Args:
        folder: of a model.
        needed: further files that it must have.
    """
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder}: this is not the folder of a model: it has no config.json")
    if not any(file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)):
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
