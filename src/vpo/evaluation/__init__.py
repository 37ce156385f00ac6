"""Pools of scored answers: sampled, scored, measured, compared, diagnosed."""
