"""What the papers prove about sparse attention, as things that run."""
