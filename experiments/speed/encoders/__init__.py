"""Cases and contestants of the experiments `encoders` and `int8`: whole models."""
