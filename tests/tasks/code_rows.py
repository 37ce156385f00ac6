"""Small rows of code in the published schemas, written for these tests."""

import base64
import json
import pickle
import zlib


def mbppplus_row(**changes):
    return {
        "task_id": "Mbpp/9001",
        "prompt": '"""\nWrite a function to add two numbers.\nassert add(1, 2) == 3\n"""\n',
        "entry_point": "add",
        "canonical_solution": "\ndef add(a, b):\n    return a + b\n",
        "base_input": [[1, 2], [3, 4]],
        "plus_input": [[number, 10**number] for number in range(40)],
        "atol": 0,
        **changes,
    }


def humanevalplus_row(**changes):
    return {
        "task_id": "HumanEval/9001",
        "prompt": 'def half(x: float) -> float:\n    """ Halve a number.\n    >>> half(2)\n    1.0\n    """\n',
        "entry_point": "half",
        "canonical_solution": "    return x / 2\n",
        "test": "",
        "base_input": [[1.0], [3.0]],
        "plus_input": [],
        "atol": 0,
        **changes,
    }


def mbpp_row(number=601, **changes):
    return {
        "text": "Write a function to sort a list.",
        "code": "def helper(x):\r\n  return x\r\ndef order(items, up=True):\r\n  return sorted(helper(items))",
        "task_id": number,
        "test_setup_code": "",
        "test_list": ["assert order([2, 1]) == [1, 2]", "assert order([]) == []", "assert order([3]) == [3]"],
        "challenge_test_list": [],
        **changes,
    }


def humaneval_row(body="    assert candidate(2) == 1.0\n    assert candidate(3) == 1.5\n", **changes):
    plus = humanevalplus_row()
    names = ("task_id", "prompt", "entry_point", "canonical_solution")
    return {**{name: plus[name] for name in names}, "test": f"def check(candidate):\n{body}", **changes}


LEETCODE = "class Solution:\n    def pick(self, items: List[int], k: int) -> int:\n        "
LEETCODE_TESTS = (
    "    assert candidate(items = [3, 1], k = 1) == 3\n    assert candidate([3, 1], k = 2) == 1\n"
    "    assert sorted(candidate([4, 5], 1)) == []\n    assert candidate(list_node([1]), 1) == 1\n"
)


def leetcode_row(body=LEETCODE_TESTS, **changes):
    """As LeetCodeDataset publishes it."""
    return {
        "task_id": "pick",
        "problem_description": "Return the k-th item.\n",
        "starter_code": LEETCODE,
        "prompt": "import random\nfrom typing import *\n",
        "completion": f"{LEETCODE}return items[k - 1]\n",
        "entry_point": "Solution().pick",
        "test": f"def check(candidate):\n{body}",
        **changes,
    }


def short_leetcode_row(body=LEETCODE_TESTS, **changes):
    """As Code-R1 lays it out."""
    return {
        "problem": "Please solve the programming task below using a self-contained code snippet in a markdown code "
        "block.\n\nReturn the k-th item.\n\nPlease complete the following python code precisely:\n"
        f"```python\n{LEETCODE.rstrip()}\n```",
        "solution": f"{LEETCODE}return items[k - 1]\n",
        "test": f"def check(candidate):\n{body}\n\ncheck(Solution().pick)",
        **changes,
    }


def packed(tests):
    """The private tests of LiveCodeBench, as they are published."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def livecodebench_row(name="q1", date="2025-03-01T00:00:00", functional=False, **changes):
    if functional:
        tests = [{"input": f"[{number}, 1]\n2", "output": "[1, 2]", "testtype": "functional"} for number in (1, 2)]
        starter = "class Solution:\n    def work(self, items: List[int], k: int) -> List[int]:\n        "
    else:
        tests = [{"input": f"{number}\n", "output": f"{number}\n", "testtype": "stdin"} for number in range(3)]
        starter = ""
    return {
        "question_title": "Echo",
        "question_content": "Print what is given.",
        "platform": "atcoder",
        "question_id": name,
        "contest_id": "c",
        "contest_date": date,
        "starter_code": starter,
        "difficulty": "easy",
        "public_test_cases": json.dumps(tests[:1]),
        "private_test_cases": packed(tests[1:]),
        "metadata": json.dumps({"func_name": "work"} if functional else {}),
        **changes,
    }


def deepcoder_row(tests, **changes):
    solution = "```python\nprint(input())\n```"
    return {"problem": "Echo.", "solutions": [solution], "tests": json.dumps(tests), **changes}


def codecontests_row(**changes):
    return {
        "name": "1_A. Echo",
        "description": "Print what is given.",
        "public_tests": {"input": ["1\n"], "output": ["1\n"]},
        "private_tests": {"input": ["2\n"], "output": ["2\n"]},
        "generated_tests": {"input": ["33\n", "4\n"], "output": ["33\n", "4\n"]},
        "solutions": {"language": [2, 3], "solution": ["int main() {}", "print(input())"]},
        **changes,
    }
