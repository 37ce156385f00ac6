"""Checks in verl's own Python, before any GPU time is spent: ``python -m vpo.engines.verl.check SETTING…``.

It prints versions and scores as JSON, or one line on what is wrong, with exit code 2. `--machine` also checks that the
packages that generate and that compute attention are installed, and that services which the reward needs answer.
"""

import argparse
import importlib.util
import json
import os
import sys
from importlib.metadata import PackageNotFoundError, entry_points, version
from typing import Any

from vpo.engines.verl.compatibility import MODE
from vpo.engines.verl.export import check_parquet, read_export
from vpo.engines.verl.versions import NEEDED, RANGES, check_versions
from vpo.util.errors import InputError, one_line

GENERATORS = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt_llm"}
FLASH = "flash_attention_2"  # verl's default
WITHOUT_FLASH = (  # sequences packed into one row need flash attention
    "--trainer-set +actor_rollout_ref.model.override_config.attn_implementation=sdpa "
    "--trainer-set actor_rollout_ref.model.use_remove_padding=false"
)


def main() -> int:
    """Check, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machine", action="store_true")
    parser.add_argument("settings", nargs="*")
    options = parser.parse_args()
    try:
        print(json.dumps(checked(options.settings, machine=options.machine)))
    except InputError as error:
        print(f"vpo: error: {error}", file=sys.stderr)
        return 2
    return 0


def checked(settings: list[str], *, machine: bool) -> dict[str, Any]:
    """Check versions, the plugin, the settings, the data and the reward function."""
    versions = {name: installed(name) for name in (*RANGES, *NEEDED.values(), "vpo", "torch", "ray", "vllm")}
    check_versions(versions, sys.executable)
    check_plugin()
    config = compose(settings)
    if machine:
        check_machine(config)
    scores = check_reward(config)
    if machine:
        read_export(config.reward.custom_reward_function.reward_kwargs.folder).get_task().probe()
    return {"versions": versions, "scores": scores}


def check_machine(config: Any) -> None:
    """Refuse settings that need a package which is not installed here."""
    generator = config.actor_rollout_ref.rollout.name
    if importlib.util.find_spec(GENERATORS.get(generator, generator)) is None:
        raise InputError(f"{sys.executable} has no {generator}, which generates: pip install 'verl[{generator}]'")
    attention = config.actor_rollout_ref.model.get("override_config", {}).get("attn_implementation", FLASH)
    if attention == FLASH and importlib.util.find_spec("flash_attn") is None:
        raise InputError(f"{sys.executable} has no flash-attn, verl's default: install it, or add {WITHOUT_FLASH}")


def installed(name: str) -> str | None:
    """The version of a package; None where it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_plugin() -> None:
    """Refuse a verl that did not load the plugin: verl itself does not report it."""
    import verl  # noqa: F401  # which loads its plugins
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    if MODE in TRAINER_REGISTRY:
        return
    plugin = sys.modules.get("vpo.engines.verl.plugin")
    if plugin is not None and plugin.FAILURE is not None:
        raise InputError(f"verl's plugin vpo cannot be loaded ({type(plugin.FAILURE).__name__}: {plugin.FAILURE})")
    policy = os.environ.get("VERL_USE_EXTERNAL_PLUGINS", "auto")
    if "vpo" not in entry_points(group="verl.plugins").names:
        raise InputError(f"verl's plugin vpo is not registered in {sys.executable}: install vpo there again")
    raise InputError(f"verl did not load its plugin vpo: VERL_USE_EXTERNAL_PLUGINS is {policy!r}, and must be 'auto'")


def compose(settings: list[str]) -> Any:
    """verl's config with some settings, refusing those that it does not have."""
    from hydra import compose, initialize_config_module
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        with initialize_config_module(config_module="verl.trainer.config", version_base=None):
            return compose("ppo_trainer", overrides=settings)
    except (HydraException, OmegaConfBaseException) as error:
        reason = one_line(error)
        raise InputError(f"verl does not take these settings: {reason}") from None


def check_reward(config: Any) -> dict[str, float]:
    """Load the reward function as verl does, and score an empty completion for the first row of each file."""
    from pyarrow import parquet
    from verl.trainer.ppo.reward import get_custom_reward_fn

    function = get_custom_reward_fn(config)
    if function is None:
        raise InputError("verl has no custom reward function in these settings")
    scores = {}
    for name in ("train_files", "val_files"):
        files = config.data[name]
        for path in [files] if isinstance(files, str) else files:
            check_parquet(path)
            rows = next(parquet.ParquetFile(path).iter_batches(batch_size=1), None)
            if rows is None:
                raise InputError(f"{path}: the file holds no rows")
            (row,) = rows.to_pylist()
            arguments = {"data_source": row["data_source"], "ground_truth": row["reward_model"]["ground_truth"]}
            try:
                scores[path] = function(solution_str="", extra_info=row["extra_info"], **arguments)["score"]
            except InputError as error:
                raise InputError(f"{path}: its first row cannot be scored ({error})") from None
    return scores


if __name__ == "__main__":
    sys.exit(main())
