"""Mathematics: gsm8k (word problems), math (MATH and AIME) and countdown (make a number of numbers)."""
