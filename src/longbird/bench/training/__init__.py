"""What `longbird bench train` measures: whole training steps, data loading included."""
