"""Linear layers with LoRA adapters, as the one weight that they amount to."""

from typing import Any


def is_mergeable(module: Any) -> bool:
    """Whether a module is peft's LoRA around a plain linear layer, and computes what one weight would."""
    import torch

    if not type(module).__module__.startswith("peft."):
        return False
    from peft.tuners.lora import Linear

    return (
        type(module) is Linear
        and type(module.base_layer) is torch.nn.Linear
        and not (module.merged and module.disable_adapters)  # `forward` changes the weight
        and not any(_is_more_than_a_product(module, adapter) for adapter in _unmerged(module))
    )


def merged_weight(module: Any) -> Any:
    """The weight of a linear layer, and what its adapters add to it; theirs may be of a higher precision."""
    import torch

    if type(module) is torch.nn.Linear:
        return module.weight
    weight = module.base_layer.weight
    with torch.autocast(weight.device.type, enabled=False):
        for adapter in _unmerged(module):
            weight = weight + module.get_delta_weight(adapter)
    return weight


def _unmerged(module: Any) -> list[str]:
    """The adapters that `forward` computes beside the layer."""
    if module.disable_adapters or module.merged:
        return []
    return [adapter for adapter in module.active_adapters if adapter in module.lora_A]


def _is_more_than_a_product(module: Any, adapter: str) -> bool:
    """Whether an adapter has a bias, is DoRA or another variant, or drops inputs."""
    import torch

    drops = module.training and type(module.lora_dropout[adapter]) is not torch.nn.Identity
    return adapter in module.lora_variant or module.lora_B[adapter].bias is not None or drops
