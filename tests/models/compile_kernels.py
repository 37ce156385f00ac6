"""Compile Triton's kernels for GPUs, without one, at shapes of real models."""

from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

from vpo.models import triton_attention, triton_kernels

CAPABILITIES = (80, 90)
OTHERS = {"step": "*i64", "chosen": "*i64", "epsilon": "fp32", "scaling": "fp32"}
WIDE = dict.fromkeys(("cos", "sin", "hidden", "output", "maxima", "sums", "delays", "won"), "*fp32")
DATA = ("projected", "scale", "query", "keys", "values", "attended", "gate_up", "gated", "logits")
HEADS = {"KEY_HEADS": 2, "QUERY_HEADS": 14, "EACH": 7}


def compiled(kernel, capability, dtype, constants):
    """The machine code of a kernel, with the types that `triton_kernels` calls it with."""
    types = {**WIDE, **dict.fromkeys(DATA, f"*{dtype}"), **OTHERS}
    names = kernel.arg_names
    chosen = {name: value for name, value in constants.items() if name in names}
    signature = {name: "constexpr" if name in chosen else types.get(name, "i32") for name in names}
    source = ASTSource(kernel, signature, {(names.index(name),): value for name, value in chosen.items()})
    return compile(source, target=GPUTarget("cuda", capability, 32)).asm["cubin"]


def main():
    kernels = [  # and the block of those that have one
        (triton_kernels._rotate_and_store, None),
        (triton_attention._attend_to_prompts, None),
        (triton_attention._attend_to_own, None),
        (triton_kernels._silu_gate, triton_kernels.GATE_BLOCK),
        (triton_kernels._race, triton_kernels.RACE_BLOCK),
    ]
    for capability in CAPABILITIES:
        for dtype, width in (("bf16", 64), ("bf16", 128), ("fp32", 64)):
            exact = dtype == "fp32"
            blocks = {
                "KEY_BLOCK": triton_attention.KEY_BLOCK // 2 if exact else triton_attention.KEY_BLOCK,
                "QUERY_BLOCK": 16,
                "BLOCKS": 2,
                "SPLITS": 3,
                "TOKENS": 151_936,
            }
            shape = {"WIDTH": width, "PADDED": width, "PRECISION": "ieee" if exact else "tf32", "NORMALISES": True}
            for kernel, block in kernels:
                assert compiled(kernel, capability, dtype, {**HEADS, **blocks, **shape, "BLOCK": block})


if __name__ == "__main__":
    main()
