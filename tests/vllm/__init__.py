"""What runs vLLM itself, on a CPU. Run by `make test-vllm`, in an environment of its own."""
