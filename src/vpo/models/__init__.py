"""Language models: found, loaded, warmed up, sampled from, served."""
