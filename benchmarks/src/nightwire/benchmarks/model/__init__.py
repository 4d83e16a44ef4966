"""What scenarios, samples and their statistics are; imports no other sub-package."""
