"""What the papers prove about sparse attention, as programs that can be run."""
